#!/bin/sh
# Every norm under every placement, 24 layers, 100 steps: trains (finished runs are skipped), then the table of verdicts and the map.
#   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep, such as --shard 1/2]
set -eu
. "$(dirname "$0")/../setup.sh"
experiment zoo
normlab sweep "$here/zoo.toml" --quiet "$@" >/dev/null
normlab compare "$out"/*/ --map model.norm,model.placement --svg "$out/map.svg" --csv "$out/verdicts.csv"
keep verdicts.csv map.svg
