#!/bin/sh
# eps of the norms, in fp32 and bf16, with their statistics in fp32 and rounded.
#   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
set -eu
. "$(dirname "$0")/../setup.sh"
experiment precision
for sweep in fp32 bf16 deep rates deep_rates zero; do normlab sweep "$here/$sweep.toml" --out "$out" "$@" >/dev/null; done
normlab compare "$out"/*/norm=* "$out"/*/statistics=* "$out"/*/lr=* "$out"/*/eps=* --table "$out/results.csv" >/dev/null
for sweep in rates deep_rates; do normlab compare "$out/$sweep"/* --map norm.eps,train.lr --svg "$out/$sweep.svg"; done
for sweep in fp32 bf16 deep zero; do normlab compare "$out/$sweep"/* --mean; done
keep results.csv rates.svg deep_rates.svg
