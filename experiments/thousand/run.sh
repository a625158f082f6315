#!/bin/sh
# Post-Norm, Pre-Norm and DeepNorm with 100 to 1000 layers.   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
set -eu
. "$(dirname "$0")/../setup.sh"
experiment thousand
for sweep in thousand rate wide; do normlab sweep "$here/$sweep.toml" --out "$out" "$@" >/dev/null; done
normlab compare "$out"/thousand/* "$out"/rate/* "$out"/wide/* --table "$out/results.csv" >/dev/null
normlab compare "$out"/thousand/* --map model.layers,model.placement --svg "$out/map.svg"
normlab compare "$out"/rate/* "$out"/wide/*

# Before the first update: what is left of a token's own vector at the top, and of the gradient at the bottom.
sed '/^\[sweep\]/,$d' "$here/thousand.toml" >"$out/one.toml"
echo "layers,placement,stream_rms_top,token_similarity_top,stream_grad_bottom,stream_grad_top" >"$out/signals.csv"
for layers in 100 1000; do
  for placement in post pre deepnorm; do
    normlab probe "$out/one.toml" --out "$out" --set run.name=one --set model.layers=$layers --set model.placement=$placement >/dev/null 2>&1
    awk -F, -v run="$layers,$placement" '
      NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
      NR == 2 { bottom = $column["stream_grad"] }
      { rms = $column["stream_rms"]; similarity = $column["token_similarity"]; top = $column["stream_grad"] }
      END { print run "," rms "," similarity "," bottom "," top }' "$out/one-probe/layers.csv" >>"$out/signals.csv"
  done
done
cat "$out/signals.csv"
keep results.csv signals.csv map.svg
