#!/bin/sh
# LayerNorm against RMSNorm: loss over three seeds, and speed.   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
# The speed is that of this machine as it is now: SPEED=0 leaves it out where other work goes on.
set -eu
. "$(dirname "$0")/../setup.sh"
experiment rmsnorm
for sweep in rmsnorm deep; do normlab sweep "$here/$sweep.toml" --out "$out" "$@" >/dev/null; done
normlab compare "$out"/rmsnorm/* "$out"/deep/* --table "$out/results.csv" >/dev/null
normlab compare "$out"/rmsnorm/* --mean --smooth 10 --svg "$out/rmsnorm.svg"
paired "$out/results.csv" norm layernorm rmsnorm | tee "$out/paired.txt"
keep results.csv paired.txt rmsnorm.svg
if [ "${SPEED:-1}" = 1 ]; then
  normlab bench norms zoo --csv "$out/speed.csv"
  keep speed.csv
fi
