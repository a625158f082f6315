#!/bin/sh
# No norm at all against Pre-Norm: how attention sharpens and the feed-forward branch grows.
#   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
set -eu
. "$(dirname "$0")/../setup.sh"
experiment nonorm
for sweep in xavier gpt2 depth; do normlab sweep "$here/$sweep.toml" --out "$out" "$@" >/dev/null; done
normlab compare "$out"/xavier/* "$out"/gpt2/* "$out"/depth/* --table "$out/results.csv" >/dev/null
for sweep in xavier gpt2; do normlab compare "$out/$sweep"/* --map train.lr,model.placement; done

# What the probes saw: the first, a middle and the last look of every run; all looks as curves.
echo "run,step,loss,entropy_mean,entropy_least,logit_max,stream_rms,attention_rms,ffn_rms" >"$out/layers.csv"
mkdir -p "$out/looks"
for sweep in xavier gpt2 depth; do
  for run in "$out/$sweep"/*; do
    name=$sweep,${run##*/}
    over_training "$run" >"$out/looks/$name.csv"
    awk -F, -v run="$name" 'NR > 1 { line[++n] = $0 }
      END { gsub(",", " ", run); print run "," line[1]; if (n > 2) print run "," line[int((n + 1) / 2)]; if (n > 1) print run "," line[n] }' \
      "$out/looks/$name.csv" >>"$out/layers.csv"
  done
done
curves() {  # METRIC FILE [options]
  metric=$1 file=$2
  shift 2
  cd "$out/looks"
  normlab compare xavier,placement=none,lr=0.001,seed=1.csv xavier,placement=pre,lr=0.001,seed=1.csv gpt2,placement=none,lr=0.003,seed=1.csv \
    gpt2,placement=none,lr=0.01,seed=1.csv gpt2,placement=pre,lr=0.003,seed=1.csv --metric "$metric" --svg "../$file" "$@" >/dev/null
  cd "$root"
}
curves entropy_least attention.svg
curves ffn_rms ffn.svg --log
keep results.csv layers.csv attention.svg ffn.svg
