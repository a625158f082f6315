#!/bin/sh
# Builds the libFuzzer targets and runs each: run.sh [SECONDS] (default 20), in $NORMLAB_BUILD (default build-fuzz). What makes a reader crash, leak
# or hang is kept in that directory as TARGET-crash-..., the corpus found so far in corpus/TARGET.
set -eu
. "$(dirname "$0")/../../experiments/setup.sh"
build_dir=${NORMLAB_BUILD:-$root/build-fuzz}
seconds=${1:-20}
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }' |
  clang++ -fsanitize=fuzzer -x c++ - -o /dev/null 2>/dev/null; then
  echo "SKIPPED, not a pass: no clang++ with libFuzzer (Debian, Ubuntu: apt-get install clang libclang-rt-dev)"
  exit 0
fi
export CXX=clang++
build fuzz -DNORMLAB_FUZZ=ON -DNORMLAB_TESTS=OFF -DNORMLAB_WERROR=ON

cd "$build_dir"
corpus=$(pwd)/corpus
for reader in toml csv json safetensors checkpoint; do mkdir -p "$corpus/$reader"; done
cp "$root"/configs/*.toml "$root/tests/fuzz/small.toml" "$corpus/toml"
cp "$root/tests/parity/small.toml" "$corpus/toml/parity.toml"
./normlab run "$root/tests/fuzz/small.toml" --out "$corpus" --overwrite --quiet
cp "$corpus"/small/*.csv "$corpus/csv"
cp "$corpus/small/config.toml" "$corpus/toml/resolved.toml"
cp "$corpus/small/summary.json" "$corpus/json"
cp "$corpus/small/checkpoint.safetensors" "$corpus/checkpoint/sealed"
# The same without a checksum, which no mutation survives. Equal lengths: the header's size stands before it.
LC_ALL=C sed 's/"format":"normlab"/"format":"foreign"/; s/"checksum":/"checksun":/' "$corpus/checkpoint/sealed" >"$corpus/checkpoint/open"
cp "$corpus/checkpoint/"* "$corpus/safetensors"
for reader in toml csv json safetensors checkpoint; do
  echo "fuzzing $reader for $seconds s"
  if ! ./tests/fuzz/fuzz_$reader "$corpus/$reader" -max_total_time="$seconds" -timeout=10 -max_len=16384 -artifact_prefix="$reader-" \
    >"fuzz_$reader.log" 2>&1; then
    cat "fuzz_$reader.log"
    exit 1
  fi
  tail -n 1 "fuzz_$reader.log"
done
