#!/bin/sh
# Post-Norm and Pre-Norm under three initialisations at three depths, two seeds: trains, draws a map for each placement, and measures the
# share of the branches at initialisation. Options are passed to `normlab sweep`, for example: run.sh --set model.norm=layernorm --overwrite
# [KEEP=1] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment init
normlab sweep "$here/init.toml" "$@" >/dev/null
for placement in post pre; do
  normlab compare "$out"/seed=*placement="$placement",*/ --map model.layers,model.init --svg "$out/$placement.svg"
done
normlab compare "$out"/seed=*/ --table "$out/results.csv" >/dev/null

# branch_ratio, the size of a branch over that of its stream, at 24 layers before any update: mean over the layers, and of the last.
echo "placement,init,sublayer,mean,last" >"$out/branches.csv"
for placement in post pre; do
  for init in xavier normal gpt2; do
    normlab probe "$out/seed=1,placement=$placement,init=$init,layers=24/config.toml" --out "$out" --set run.name="$placement-$init" >/dev/null
    awk -F, -v key="$placement,$init" '
      NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
      { kind = $column["sublayer"]; n[kind]++; sum[kind] += $column["branch_ratio"]; last[kind] = $column["branch_ratio"] }
      END { for (i = split("attention,ffn", kinds, ","); i > 0; i--) printf "%s,%s,%.4f,%.4f\n", key, kinds[i], sum[kinds[i]] / n[kinds[i]], last[kinds[i]] }
    ' "$out/$placement-$init-probe/layers.csv" >>"$out/branches.csv"
  done
done
cat "$out/branches.csv"
keep results.csv branches.csv post.svg pre.svg
