#!/bin/sh
# The claims of the sources with their verdicts, from the results of the other folders and of ten small models of its own (three seeds each).
#   [KEEP=1] [NORMLAB=PATH] run.sh
set -eu
. "$(dirname "$0")/../setup.sh"
experiment claims
train() {  # NAME SETTING...
  name=$1
  shift
  settings=
  for setting in "$@"; do settings="$settings --set $setting"; done
  for seed in 1 2 3; do
    # shellcheck disable=SC2086  # settings hold no blanks
    normlab run "$here/claims.toml" --out "$out/runs" --quiet --resume --set run.name="$name-$seed" --set run.seed=$seed $settings >/dev/null
  done
}
train pre
train pre-warmup train.warmup=50
train pre-no-final model.final_norm=off
train pre-hot train.lr=3e-3
train pre-no-final-hot model.final_norm=off train.lr=3e-3
train more model.placement=sandwich placement.embedding_norm=true model.qk_norm=rmsnorm model.v_norm=rmsnorm
train most model.placement=normformer model.qk_norm=rmsnorm model.v_norm=rmsnorm
train scaled-0.9 model.placement=scaled_pre placement.alpha=0.9
train scaled-0.8 model.placement=scaled_pre placement.alpha=0.8
train deepnorm model.placement=deepnorm
normlab compare "$out"/runs/* --table "$out/results.csv" >/dev/null
mkdir -p "$out/claims" && cp "$out/results.csv" "$out/claims/results.csv"

# From here on nothing is typed in: figures and verdicts are functions of the results.
others=$(ls experiments/*/*.csv | grep -v -e '^experiments/claims/' -e '^experiments/tinyshakespeare/')
# shellcheck disable=SC2086
awk -f "$here/claims.awk" -f "$here/rules.awk" $others "$out/claims/results.csv" >"$out/claims.csv"
awk -f "$here/table.awk" "$out/claims.csv" >"$out/claims.md"
cat "$out/claims.md"
keep results.csv claims.csv claims.md
