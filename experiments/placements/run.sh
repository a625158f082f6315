#!/bin/sh
# Post-Norm against Pre-Norm, DeepNorm and Sandwich at 24 layers without warmup, on the embedded stories: builds, trains, compares.
# Options are passed on to `normlab sweep`, for example: run.sh --set train.steps=300
set -eu
. "$(dirname "$0")/../setup.sh"
need_tools
build normlab -DNORMLAB_TESTS=OFF
cd "$root"
"$build_dir/normlab" sweep configs/placements.toml "$@" >/dev/null
"$build_dir/normlab" compare runs/placements/placement=post runs/placements/placement=pre runs/placements/placement=deepnorm \
  runs/placements/placement=sandwich --smooth 5 --svg runs/placements.svg --html runs/placements.html
echo
echo "chart: $root/runs/placements.svg"
echo "page:  $root/runs/placements.html"
