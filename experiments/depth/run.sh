#!/bin/sh
# Post-Norm, Pre-Norm, Sandwich and DeepNorm without warmup at 12, 24 and 48 layers, two seeds each: trains, compares, draws.
# Options are passed to `normlab sweep`, for example: run.sh --set train.steps=300 --overwrite   [KEEP=1] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment depth
normlab sweep "$here/depth.toml" "$@" >/dev/null
normlab compare "$out"/*/ --map model.layers,model.placement --svg "$out/map.svg" --table "$out/results.csv"
seed="$out/seed=1"
normlab compare "$seed,placement=post"*/ "$seed,placement=pre,layers=48" "$seed,placement=sandwich,layers=48" \
  "$seed,placement=deepnorm,layers=48" --smooth 10 --svg "$out/curves.svg" >/dev/null
keep results.csv map.svg curves.svg
