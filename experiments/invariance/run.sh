#!/bin/sh
# What every norm is deaf to and what it listens to.   [KEEP=1] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment invariance
normlab invariance --csv "$out/results.csv" --svg "$out/reach.svg"
keep results.csv reach.svg
