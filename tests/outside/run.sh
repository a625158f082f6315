#!/bin/sh
# A project of one's own against the installed library: run.sh BUILD_DIR CXX, of a finished build. Builds experiments/outside and the README's
# example in a directory that is gone afterwards.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build_dir=${1:?usage: run.sh BUILD_DIR CXX}
export CXX="${2:?usage: run.sh BUILD_DIR CXX}"
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

failed=0
fail() {
  echo "FAILED: $*"
  failed=1
}
expect() {  # CODE TEXT COMMAND...: its exit code, and a text that its output holds
  code=$1 text=$2 got=0
  shift 2
  "$@" >output 2>&1 || got=$?
  [ "$got" = "$code" ] || { fail "exit code $got, not $code: $*"; cat output; }
  grep -qF -- "$text" output || { fail "no '$text' in the output of: $*"; cat output; }
}
same() {  # RUN RUN
  for file in metrics.csv config.toml checkpoint.safetensors; do cmp "$1/outside/$file" "$2/outside/$file" || fail "$1 and $2 differ"; done
}
make_project() {  # SOURCE_DIR TARGET
  { cmake -S "$1" -B "$1/build" -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" &&
    cmake --build "$1/build" --target "$2"; } >build.log 2>&1 || { cat build.log; exit 1; }
}

# What is installed does not know where.
cmake --install "$build_dir" --prefix "$work/prefix" >/dev/null
mv prefix moved
if grep -rlF --include=*.cmake --include=*.h -e "$root" -e "$work/prefix" moved; then fail "installed files name paths of this machine"; fi

cp -R "$root/experiments/outside" project
make_project project all
outside=project/build/outside
expect 0 "l1norm  " $outside list norms
expect 0 "rskip  " $outside list placements
expect 0 " 0 failed" $outside gradcheck --norm l1norm
grep -q "^norm *l1norm: plain .* ok" output || fail "no case of l1norm alone"
expect 0 " 0 failed" $outside gradcheck --placement rskip
grep -q "^model *rskip x l1norm .* ok" output || fail "no case of both"

config=project/outside.toml
short="--set eval.every=5 --quiet"
# shellcheck disable=SC2086  # options hold no blanks
{
  expect 0 "" $outside run $config $short --set train.steps=12 --out one --threads 1
  expect 0 "" $outside run $config $short --set train.steps=12 --out three --threads 3
  expect 0 "" $outside run $config $short --set train.steps=5 --out resumed --threads 1
  expect 0 "" $outside run $config $short --set train.steps=12 --out resumed --threads 3 --resume
}
same one three
same one resumed
[ "$(wc -l <one/outside/metrics.csv)" = 13 ] || fail "metrics.csv has no 12 rows"
expect 2 "outside.toml:10:1: 'model.norm' is 'l1norm'" moved/bin/normlab check $config
expect 2 "unknown name 'rskip'" moved/bin/normlab gradcheck --placement rskip

# A backward that leaves a part of the derivative out, and says nothing of it.
mkdir wrong twice readme
cp project/CMakeLists.txt wrong
sed 's/\(const Var deviation = \)\(.*\);/\1detach(\2);/' project/outside.cpp >wrong/outside.cpp
cmp -s project/outside.cpp wrong/outside.cpp && fail "nothing was made wrong"
make_project wrong outside_f64
expect 1 "FAILED" wrong/build/outside_f64 gradcheck --norm l1norm
# A record that cannot be registered is one line of error, whatever the command.
cp project/CMakeLists.txt twice
sed 's/{&l1norm}/{\&l1norm, \&l1norm}/' project/outside.cpp >twice/outside.cpp
make_project twice outside
expect 2 "normlab: norm 'l1norm': there is one of that name already" twice/build/outside list

# The README's example.
block() { awk -v kind="$1" '/^## /{inside = $0 == "## From outside"} /^```/{on = inside && $0 == "```" kind; next} on' "$root/README.md"; }
block cpp >readme/mine.cpp
block cmake >readme/CMakeLists.txt
make_project readme mine
expect 0 "srmsnorm  " readme/build/mine list norms
expect 1 "mine_f64 is missing" readme/build/mine gradcheck --norm srmsnorm
expect 0 "srmsnorm" readme/build/mine check "$root/configs/post-24.toml" --set model.norm=srmsnorm

# Within another project: the library alone.
mkdir within
cat >within/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(within LANGUAGES CXX)
add_subdirectory("$root" normlab)
normlab_add_program(within "$work/readme/mine.cpp")
if(TARGET unit_tests OR CMAKE_BUILD_TYPE)
  message(FATAL_ERROR "more than the library")
endif()
END
expect 0 "Generating done" cmake -S within -B within/build
exit $failed
