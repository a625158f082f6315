#!/bin/sh
# Post-Norm, Pre-Norm and DeepNorm with 100 to 1000 layers.   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
set -eu
. "$(dirname "$0")/../setup.sh"
experiment thousand
normlab sweep "$here/thousand.toml" --out "$out" "$@" >/dev/null
normlab compare "$out"/thousand/* --table "$out/results.csv" >/dev/null
normlab compare "$out"/thousand/* --map model.layers,model.placement --svg "$out/map.svg"
normlab compare "$out"/thousand/layers=1000,* --smooth 5 --svg "$out/loss.svg"
keep results.csv map.svg loss.svg
