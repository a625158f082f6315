#!/bin/sh
# Every row of the table in README.md, as CSV.   [SEEDS="1 2 3"] run.sh PATH/TO/tinyshakespeare.txt [pattern of row names]
set -eu
[ $# -ge 1 ] && [ -f "$1" ] || { echo "usage: run.sh PATH/TO/tinyshakespeare.txt [PATTERN]" >&2; exit 2; }
text=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
pattern=${2:-}
. "$(dirname "$0")/../setup.sh"
need_tools
build normlab -DNORMLAB_TESTS=OFF
cd "$root"
out=runs/tinyshakespeare

field() { sed -n "s/.*\"$1\": \(.*\),/\1/p" "$2/summary.json" | tr -d '"'; }

row() {  # placement norm layers lr warmup steps [init]
  name="$1-$2-$3-lr$4-w$5-$6${7:+-$7}"
  case $name in *"$pattern"*) ;; *) return 0 ;; esac
  for seed in ${SEEDS:-1}; do
    "$build_dir/normlab" run experiments/tinyshakespeare/base.toml --out $out --resume --set run.name="$name-seed$seed" \
      --set run.seed="$seed" --set data.path="$text" --set model.placement="$1" --set model.norm="$2" --set model.layers="$3" \
      --set train.lr="$4" --set train.warmup="$5" --set train.steps="$6" --set model.init="${7:-auto}" >/dev/null
    echo "$name,$seed,$(field verdict "$out/$name-seed$seed"),$(field final_loss "$out/$name-seed$seed")"
  done
}

echo "run,seed,verdict,final_loss"
row post rmsnorm 6 1e-3 0 600
row post rmsnorm 6 1e-3 200 600
row post rmsnorm 12 1e-3 0 600
row post layernorm 12 1e-3 0 300
row post rmsnorm 12 1e-3 200 600
row post rmsnorm 18 1e-3 0 600
row post rmsnorm 18 1e-3 200 600
row post rmsnorm 24 1e-3 0 150
row post rmsnorm 24 3e-3 0 150
row post rmsnorm 24 3e-4 400 800
row post rmsnorm 24 1e-3 400 800
for placement in pre sandwich deepnorm; do row $placement rmsnorm 24 1e-3 0 150; done
for placement in post pre sandwich deepnorm; do
  row $placement rmsnorm 48 1e-3 0 150
  row $placement rmsnorm 48 3e-3 0 150
done
row pre rmsnorm 6 1e-3 0 600
row post rmsnorm 6 1e-2 0 200
row pre rmsnorm 6 1e-2 0 200
for placement in post deepnorm pre sandwich; do
  row $placement rmsnorm 24 1e-2 0 100
  row $placement rmsnorm 24 3e-2 0 100
done
row post layernorm 24 1e-3 0 150 normal
row pre layernorm 24 1e-3 0 150 normal
