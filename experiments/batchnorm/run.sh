#!/bin/sh
# BatchNorm in a language model: padding in the statistics, small batches, training against evaluation, generation, the future.
#   [KEEP=1] [NORMLAB=PATH] run.sh [options of normlab sweep]
set -eu
. "$(dirname "$0")/../setup.sh"
experiment batchnorm
for sweep in batch short leak padding statistics generation; do normlab sweep "$here/$sweep.toml" --out "$out" "$@" >/dev/null; done
for sweep in batch short leak padding; do
  normlab compare "$out/$sweep"/* --table "$out/$sweep.csv" >/dev/null
  normlab compare "$out/$sweep"/* --mean
done

# Numbers of one tensor of a safetensors file, one a line.   tensor FILE NAME
tensor() {
  header=$(od -A n -t u8 -N 8 "$1" | tr -d ' ')
  range=$(head -c $((header + 8)) "$1" | tail -c "$header" | sed "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/")
  first=${range% *}
  od -A n -v -t f4 -j $((header + 8 + first)) -N $((${range#* } - first)) "$1" | tr -s ' ' '\n' | sed '/^$/d'
}

# The first norm sees nothing but embeddings, so its statistics can be had from the token ids and the embeddings alone: without padding,
# with it, and as if its vector were zero. Beside them what normlab kept as running statistics (momentum 1: those of the one batch).
echo "seed,positions,padded,mean_error,variance_error,mean_kept,variance_ratio,mean_kept_zeros,variance_ratio_zeros" >"$out/statistics.csv"
for seed in 1 2; do
  one=$out/one.toml
  sed '/^\[sweep\]/,$d' "$here/statistics.toml" >"$one"
  normlab export "$one" "$out/init.safetensors" --set run.seed=$seed >/dev/null 2>&1
  normlab data "$one" --batches 1 --set run.seed=$seed >"$out/ids.csv"
  tensor "$out/init.safetensors" embedding.token.weight >"$out/embedding.txt"
  for masked in true false; do
    normlab export "$out/statistics/masked=$masked,seed=$seed" "$out/$masked.safetensors" >/dev/null 2>&1
    for what in mean var; do tensor "$out/$masked.safetensors" layers.0.attention.norm_in.running_$what >"$out/$masked-$what.txt"; done
  done
  awk -v seed=$seed -v dir="$out/" '
    function statistics(kind, j,   i, x, sum, squares, count) {  # of channel j: mean, variance by n - 1
      sum = squares = count = 0
      for (i = 0; i < n; i++) {
        if (kind == "valid" && ignored[i]) continue
        x = kind == "zeros" && ignored[i] ? 0 : e[token[i], j]
        sum += x; squares += x * x; count++
      }
      mean = sum / count; variance = (squares - sum * sum / count) / (count - 1)
    }
    function read(name, to,   i) { while ((getline line < (dir name)) > 0) to[i++] = line }
    function off(a, b) { return a > b ? a - b : b - a }
    BEGIN {
      C = 64; n = k = 0
      while ((getline line < (dir "embedding.txt")) > 0) { e[int(k / C), k % C] = line; k++ }
      getline line < (dir "ids.csv")
      while ((getline line < (dir "ids.csv")) > 0) { split(line, f, ","); token[n] = f[4]; ignored[n] = f[5] < 0; padded += ignored[n++] }
      read("true-mean.txt", tm); read("true-var.txt", tv); read("false-mean.txt", fm); read("false-var.txt", fv)
      for (j = 0; j < C; j++) {
        statistics("valid", j); m = mean; v = variance
        if (off(m, tm[j]) > mean_error) mean_error = off(m, tm[j])
        if (off(v, tv[j]) / v > variance_error) variance_error = off(v, tv[j]) / v
        statistics("all", j)
        if (off(mean, fm[j]) > mean_error) mean_error = off(mean, fm[j])
        if (off(variance, fv[j]) / variance > variance_error) variance_error = off(variance, fv[j]) / variance
        mm += m * m; ma += m * mean; ratio += variance / v / C
        statistics("zeros", j)
        mz += m * mean; zero += variance / v / C
      }
      printf "%d,%d,%d,%.1e,%.1e,%.3f,%.3f,%.3f,%.3f\n", seed, n, padded, mean_error, variance_error, ma / mm, ratio, mz / mm, zero
    }' >>"$out/statistics.csv"
done
cat "$out/statistics.csv"

# Generation, token by token. A word counts as one where it occurs in the grammar of the stories; letters that spell none are
# what a model writes that was trained on more than it has when it writes.
grep -oh '"[^"]*"' src/data/stories_rules.cpp src/data/stories.cpp | tr -cs 'A-Za-z' '\n' | tr 'A-Z' 'a-z' | sort -u >"$out/words.txt"
echo "norm,seed,final_loss,validation_loss,words,known" >"$out/generation.csv"
for run in "$out"/generation/*; do
  losses=$(sed -n -e 's/.*"final_loss": \([0-9.]*\).*/\1/p' -e 's/.*"validation_loss": \([0-9.]*\).*/\1/p' "$run/summary.json" | paste -sd, -)
  normlab sample "$run" --length 2000 --temperature 0.7 2>/dev/null | tr -cs 'A-Za-z' '\n' | tr 'A-Z' 'a-z' | awk -v run="${run##*/}" -v losses="$losses" -v words="$out/words.txt" '
    BEGIN { while ((getline word < words) > 0) known[word]; gsub(/[a-z]*=/, "", run) }
    length($0) > 2 { all++; if ($0 in known) good++ }
    END { print run "," losses "," all "," good + 0 }' >>"$out/generation.csv"
done
cat "$out/generation.csv"
normlab compare "$out"/generation/*,seed=1 --smooth 10 --svg "$out/training.svg" >/dev/null
normlab compare "$out"/leak/*,seed=1 --metric val_loss --log --svg "$out/validation.svg" >/dev/null
keep batch.csv short.csv leak.csv padding.csv statistics.csv generation.csv training.svg validation.svg
