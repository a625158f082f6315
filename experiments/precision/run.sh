#!/bin/sh
# eps of the norms, in fp32 and bf16, with their statistics in fp32 and rounded.   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
set -eu
. "$(dirname "$0")/../setup.sh"
experiment precision
for sweep in fp32 bf16 zero; do normlab sweep "$here/$sweep.toml" --out "$out" "$@" >/dev/null; done
normlab compare "$out"/fp32/* "$out"/bf16/* "$out"/zero/* --table "$out/results.csv" >/dev/null
for norm in layernorm rmsnorm; do
  for statistics in fp32 bf16; do normlab compare "$out"/bf16/norm=$norm,statistics=$statistics,* --map norm.eps; done
done
keep results.csv
