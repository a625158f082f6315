#!/bin/sh
# What each layer of a trained model is worth: 12 layers under four placements, two seeds. Trains, leaves layers out one by one, draws.
# Options are passed to `normlab sweep`, for example: run.sh --set model.norm=layernorm --overwrite   [KEEP=1] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment dilution
normlab sweep "$here/dilution.toml" "$@" >/dev/null

# A line for each layer: the validation loss that its removal costs, and how far its two branches turn the stream at the last step.
echo "placement,seed,layer,damage,angle_attention,angle_ffn" >"$out/results.csv"
for placement in pre lns sandwich post; do
  for seed in 1 2; do
    run=$out/seed=$seed,placement=$placement
    normlab removal "$run" --csv "$run/removal.csv" >/dev/null
    awk -F, -v key="$placement,$seed" '
      FNR == 1 { file++; for (i = 1; i <= NF; i++) column[$i] = i; next }
      file == 1 { damage[$column["layer"]] = $column["damage"]; next }
      { angle[$column["layer"], $column["sublayer"]] = $column["angular_distance"] }
      END { for (n = 0; n in damage; n++) printf "%s,%d,%.4f,%.4f,%.4f\n", key, n, damage[n], angle[n, "attention"], angle[n, "ffn"] }
    ' "$run/removal.csv" "$run/layers.csv" >>"$out/results.csv"
  done
done

# Means over the thirds of the layers.
awk -F, '
  NR == 1 { next }
  $1 "," $2 != key { if (rows) out(); key = $1 "," $2; rows = 0 }
  { damage[rows] = $4; angle[rows] = ($5 + $6) / 2; rows++ }
  function third(values, part,  n, sum) { for (n = part * rows / 3; n < (part + 1) * rows / 3; n++) sum += values[n]; return sum / (rows / 3) }
  function out(  p) {
    printf "%-12s damage", key
    for (p = 0; p < 3; p++) printf " %8.4f", third(damage, p)
    printf "   angle"
    for (p = 0; p < 3; p++) printf " %7.4f", third(angle, p)
    printf "\n"
  }
  END { out() }' "$out/results.csv"
normlab compare "$out"/seed=*/ --table "$out/losses.csv"
# For the chart: the damage in the form of a layers.csv, averaged over the seeds.
for placement in pre lns sandwich post; do
  mkdir -p "$out/damage/$placement"
  awk -F, -v placement="$placement" '
    $1 == placement { sum[$3] += $4; count[$3]++ }
    END { print "step,layer,sublayer,damage"; for (n = 0; n in sum; n++) print "0," n ",attention," sum[n] / count[n] }
  ' "$out/results.csv" >"$out/damage/$placement/layers.csv"
done
normlab compare "$out"/damage/* --layers damage --log --svg "$out/damage.svg" >/dev/null
normlab compare "$out"/seed=1,*/ --layers angular_distance --svg "$out/angle.svg" >/dev/null
keep results.csv losses.csv damage.svg angle.svg
