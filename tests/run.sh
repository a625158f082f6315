#!/bin/sh
# Builds everything and runs all tests. Options are passed on to cmake, for example: run.sh -DNORMLAB_SANITIZE=address,undefined
set -eu
. "$(dirname "$0")/../experiments/setup.sh"
need_tools catch2
build all -DNORMLAB_TESTS=ON "$@"
cd "$build_dir"
ctest --output-on-failure
