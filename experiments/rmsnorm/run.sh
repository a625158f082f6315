#!/bin/sh
# LayerNorm against RMSNorm: loss over three seeds, and speed.   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
# The speed is that of this machine as it is now: SPEED=0 leaves it out where other work goes on.
set -eu
. "$(dirname "$0")/../setup.sh"
experiment rmsnorm
normlab sweep "$here/rmsnorm.toml" --out "$out" "$@" >/dev/null
normlab compare "$out"/rmsnorm/* --table "$out/results.csv" >/dev/null
normlab compare "$out"/rmsnorm/* --mean --smooth 10 --svg "$out/rmsnorm.svg"
keep results.csv rmsnorm.svg
if [ "${SPEED:-1}" = 1 ]; then
  normlab bench norms zoo --csv "$out/speed.csv"
  keep speed.csv
fi
