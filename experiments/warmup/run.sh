#!/bin/sh
# Post-Norm at five depths under five lengths of warmup, the border with a second seed: trains, compares, draws the map.
# Options are passed to `normlab sweep`, for example: run.sh --set train.steps=1000   [KEEP=1] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment warmup
for part in warmup border; do normlab sweep "$here/$part.toml" "$@" >/dev/null; done
normlab compare "$out"/layers=*/ "$out-border"/*/ --map model.layers,train.warmup --svg "$out/map.svg" --table "$out/results.csv"
normlab compare "$out"/layers=12,*/ --smooth 10 --svg "$out/curves.svg" >/dev/null
keep results.csv map.svg curves.svg
