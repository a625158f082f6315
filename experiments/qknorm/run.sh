#!/bin/sh
# Norm of queries and keys against a cap on the scores, both and neither, at high learning rates.
#   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
set -eu
. "$(dirname "$0")/../setup.sh"
experiment qknorm
for sweep in qknorm deep; do normlab sweep "$here/$sweep.toml" --out "$out" "$@" >/dev/null; done
normlab compare "$out"/qknorm/* "$out"/deep/* --table "$out/results.csv" >/dev/null

# What the probes saw: the extremes of every run, and all looks as curves.
echo "run,entropy_mean_last,entropy_least,logit_max,logit_max_last" >"$out/attention.csv"
for run in "$out"/qknorm/* "$out"/deep/*; do
  over_training "$run" >"$out/${run##*/}.csv"
  awk -F, -v run="${run##*/}" 'NR > 1 { if (NR == 2 || $4 < least) least = $4; if ($5 > most) most = $5; mean = $3; last = $5 }
    END { gsub(",", " ", run); print run "," mean "," least "," most "," last }' "$out/${run##*/}.csv" >>"$out/attention.csv"
done
cat "$out/attention.csv"
of() { echo "$out/lr=0.01,qk_norm=$1,attention_cap=$2,seed=1.csv"; }
curves() {  # METRIC FILE [options]
  metric=$1 file=$2
  shift 2
  normlab compare "$(of none 0.0)" "$(of none 20.0)" "$(of rmsnorm 0.0)" "$(of rmsnorm 20.0)" --metric "$metric" --svg "$out/$file" "$@" >/dev/null
}
curves logit_max logits.svg --log
curves entropy_least entropy.svg
keep results.csv attention.csv logits.svg entropy.svg
