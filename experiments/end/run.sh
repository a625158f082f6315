#!/bin/sh
# Post-Norm and Pre-Norm with warmup at 6 and 12 layers, three seeds each: trains, averages over the seeds, draws.
# Options are passed to `normlab sweep`, for example: run.sh --set train.warmup=400 --overwrite   [KEEP=1] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment end
normlab sweep "$here/end.toml" "$@" >/dev/null
normlab compare "$out"/*/ --table "$out/results.csv" >/dev/null
normlab compare "$out"/*/ --mean --smooth 20 --svg "$out/end.svg"
normlab compare "$out"/*/ --mean --metric val_loss
keep results.csv end.svg
