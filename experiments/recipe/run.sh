#!/bin/sh
# Vaswani's recipe on six Post-Norm layers, and the same rates from the first step: trains, compares, draws.
# Options are passed to `normlab sweep`, for example: run.sh --set train.steps=8000 --overwrite   [KEEP=1] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment recipe
for part in recipe cold; do normlab sweep "$here/$part.toml" "$@" >/dev/null; done
normlab compare "$out"/*/ "$out-cold"/*/ --table "$out/results.csv"
normlab compare "$out"/*/ "$out-cold"/*/ --mean --smooth 50 --svg "$out/curves.svg" >/dev/null
keep results.csv curves.svg
