#!/bin/sh
# The residual stream by layer: at initialisation under several settings, then while 24 layers of Pre-Norm and Sandwich train; its exponent by
# least squares. Options are passed to `normlab sweep`, for example: run.sh --set model.norm=layernorm --overwrite   [KEEP=1] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment stream

# A line for each look: the exponent e of stream_rms ~ k^e over the sub-layers k >= 2 (before that the embedding counts), the stream
# entering the third and the last sub-layer, and the share branch_ratio of the first, the middle and the last feed-forward branch.
fit() {  # FILE NAME SEED
  awk -F, -v name="$2,$3" '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    {
      step = $column["step"]; k = 2 * $column["layer"] + ($column["sublayer"] == "ffn"); last = k
      if (!(step in n)) { steps[++looks] = step; n[step] = 0 }
      rms[step, k] = $column["stream_rms"]; ratio[step, k] = $column["branch_ratio"]
      if (k < 2) next
      x = log(k); y = log(rms[step, k]); n[step]++; sx[step] += x; sy[step] += y; sxx[step] += x * x; sxy[step] += x * y
    }
    END {
      for (i = 1; i <= looks; i++) {
        s = steps[i]
        printf "%s,%d,%.3f,%.3f,%.3f,%.3f,%.3f,%.3f\n", name, s, (n[s] * sxy[s] - sx[s] * sy[s]) / (n[s] * sxx[s] - sx[s] ^ 2), \
          rms[s, 2], rms[s, last], ratio[s, 1], ratio[s, int(last / 4) * 2 + 1], ratio[s, last]
      }
    }' "$1" >>"$out/results.csv"
}

normlab sweep "$here/stream.toml" "$@" >/dev/null
echo "model,seed,step,exponent,rms_third,rms_last,ratio_first,ratio_middle,ratio_last" >"$out/results.csv"
for seed in 1 2; do
  initial() {  # NAME PLACEMENT [--set KEY=VALUE]...
    name=$1 run=$out/seed=$seed,placement=$2
    shift 2
    normlab probe "$run/config.toml" --out "$out" --set run.name="$name-seed$seed" "$@" >/dev/null
    fit "$out/$name-seed$seed-probe/layers.csv" "$name" "$seed"
  }
  initial pre pre
  initial sandwich sandwich
  initial pre-96-layers pre --set model.layers=96
  # A run's config names what "auto" came to at its own width: asked for anew here.
  initial pre-width-256 pre --set model.width=256 --set model.ffn_width=1024 --set model.attention_scale=auto
  initial pre-normal pre --set model.init=normal
  initial pre-gpt2 pre --set model.init=gpt2
done
for seed in 1 2; do
  for placement in pre sandwich; do fit "$out/seed=$seed,placement=$placement/layers.csv" "$placement" "$seed"; done
done
awk -F, '{ printf "%-14s %4s %5s %9s %10s %9s %12s %13s %11s\n", $1, $2, $3, $4, $5, $6, $7, $8, $9 }' "$out/results.csv"

for quantity in stream_rms branch_ratio; do
  normlab compare "$out/pre-seed1-probe" "$out/sandwich-seed1-probe" "$out/seed=1,placement=pre" "$out/seed=1,placement=sandwich" \
    --layers $quantity --log --svg "$out/$quantity.svg" >/dev/null
done
keep results.csv stream_rms.svg branch_ratio.svg
