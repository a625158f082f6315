#!/bin/sh
# Norms with and without learned gain and bias.   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
set -eu
. "$(dirname "$0")/../setup.sh"
experiment affine
for sweep in affine post deep; do normlab sweep "$here/$sweep.toml" --out "$out" "$@" >/dev/null; done
normlab compare "$out"/affine/* "$out"/post/* "$out"/deep/* --table "$out/results.csv" >/dev/null
normlab compare "$out"/affine/* --mean --smooth 10 --svg "$out/affine.svg"
paired "$out/results.csv" affine true false | tee "$out/paired.txt"
keep results.csv paired.txt affine.svg
