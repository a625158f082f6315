#!/bin/sh
# Gradients of the ffn's second matrix by layer at initialisation: Post-Norm and Pre-Norm, four depths, three seeds. Nothing is trained.
# Options are passed to `normlab probe`, for example: run.sh --set model.norm=rmsnorm   [KEEP=1] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment gradients

# A line for every layer: its gradient, averaged over the seeds.
echo "placement,layers,layer,grad_out,token_similarity" >"$out/results.csv"
for placement in post pre; do
  for layers in 6 12 24 48; do
    for seed in 1 2 3; do
      normlab probe "$here/gradients.toml" --out "$out" --set run.name="$placement-$layers-$seed" --set run.seed="$seed" \
        --set model.placement="$placement" --set model.layers="$layers" "$@" >/dev/null
    done
    awk -F, -v key="$placement,$layers" '
      FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
      $column["sublayer"] == "ffn" {
        n = $column["layer"]; count[n]++; gradient[n] += $column["grad_out"]; similarity[n] += $column["token_similarity"]
        if (n > last) last = n
      }
      END { for (n = 0; n <= last; n++) printf "%s,%d,%.4f,%.4f\n", key, n, gradient[n] / count[n], similarity[n] / count[n] }
    ' "$out/$placement-$layers-"?-probe/layers.csv >>"$out/results.csv"
  done
done

# First, middle and last layer; last over first; then how the last layer's gradient goes with depth, d log gradient / d log layers.
awk -F, '
  NR == 1 { next }
  { key = $1 "," $2; if (!(key in first)) { keys[++n] = key; first[key] = $4 }; last[key] = $4; value[key, $3] = $4 }
  END {
    printf "%-9s %6s %8s %8s %8s %10s\n", "placement", "layers", "first", "middle", "last", "last/first"
    for (i = 1; i <= n; i++) {
      split(keys[i], part, ","); key = keys[i]
      printf "%-9s %6d %8.3f %8.3f %8.3f %10.2f\n", part[1], part[2], first[key], value[key, int(part[2] / 2)], last[key], last[key] / first[key]
      x = log(part[2]); y = log(last[key]); p = part[1]
      m[p]++; sx[p] += x; sy[p] += y; sxx[p] += x * x; sxy[p] += x * y
    }
    for (p in m) printf "%s: the last layer'"'"'s gradient goes like layers^%.2f\n", p, (m[p] * sxy[p] - sx[p] * sy[p]) / (m[p] * sxx[p] - sx[p] ^ 2)
  }' "$out/results.csv"

normlab compare "$out/post-24-1-probe" "$out/pre-24-1-probe" --layers grad_out --svg "$out/gradients.svg" >/dev/null
keep results.csv gradients.svg
