#!/bin/sh
# Installs the library below the build directory, builds this folder against it as a project of its own, checks the gradients of its norm and
# placement and trains a few steps. Options are passed on to `outside run`, for example: run.sh --set train.steps=300
set -eu
. "$(dirname "$0")/../setup.sh"
need_tools
build all -DNORMLAB_TESTS=OFF
prefix=$build_dir/prefix
program=$build_dir/outside/outside
log=$build_dir/outside.log
{
  cmake --install "$build_dir" --prefix "$prefix" &&
    cmake -S "$root/experiments/outside" -B "$build_dir/outside" -DCMAKE_PREFIX_PATH="$prefix" &&
    cmake --build "$build_dir/outside" --parallel
} >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
"$program" gradcheck --norm l1norm
"$program" gradcheck --placement rskip
"$program" run "$root/experiments/outside/outside.toml" --out "$root/runs" --overwrite "$@"
