# Sourced by the run scripts: finds or installs what a build needs, then builds. POSIX sh.
#   need_tools catch2?   compiler, cmake, ninja, and Catch2 where asked, through apt-get when missing and allowed
#   build TARGET CMAKE_OPTIONS...
#   experiment NAME      builds the program (NORMLAB=PATH: takes that one) for a folder that keeps its results; from then on `normlab`
#                        runs it, $here is the folder and $out, runs/NAME, has the results
#   keep FILE...         KEEP=1 copies these results into the folder, where the README's are

root=$(cd "$(dirname "$0")/../.." && pwd)
[ -f "$root/CMakeLists.txt" ] || root=$(cd "$(dirname "$0")/.." && pwd)
build_dir=${NORMLAB_BUILD:-$root/build}

have() { command -v "$1" >/dev/null 2>&1; }

have_catch2() {
  for place in /usr/include /usr/local/include ${CMAKE_PREFIX_PATH:+"$CMAKE_PREFIX_PATH/include"}; do
    [ -f "$place/catch2/catch.hpp" ] || [ -f "$place/catch2/catch_all.hpp" ] && return 0
  done
  return 1
}

need_tools() {
  missing=""
  have "${CXX:-c++}" || missing="$missing g++"
  have cmake || missing="$missing cmake"
  have ninja || have make || missing="$missing ninja-build"
  if [ "${1:-}" = catch2 ] && ! have_catch2; then missing="$missing catch2"; fi
  [ -z "$missing" ] && return 0
  as_root=""
  if [ "$(id -u)" != 0 ]; then
    if have sudo && sudo -n true 2>/dev/null; then as_root="sudo -n"; else as_root=no; fi
  fi
  if have apt-get && [ "$as_root" != no ]; then
    echo "installing:$missing" >&2
    # shellcheck disable=SC2086
    { $as_root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq $missing; } >&2 ||
      { echo "could not install:$missing" >&2; exit 1; }
  else
    echo "missing:$missing. Install them (Debian, Ubuntu: sudo apt-get install$missing) and run this again." >&2
    exit 1
  fi
}

build() {  # TARGET CMAKE_OPTIONS...
  target=$1
  shift
  mkdir -p "$build_dir"
  generator=""
  have ninja && [ ! -f "$build_dir/CMakeCache.txt" ] && generator="-GNinja"
  log=$build_dir/build.log
  # Two scripts at once take turns: both build here.
  if have flock; then
    exec 9>"$build_dir/.lock"
    flock 9
  fi
  echo "building $build_dir ... (log: $log)" >&2
  { cmake -S "$root" -B "$build_dir" $generator "$@" && cmake --build "$build_dir" --parallel --target "$target"; } >"$log" 2>&1 ||
    { cat "$log" >&2; exit 1; }
  exec 9>&-
}

experiment() {  # NAME
  here=experiments/$1
  out=runs/$1
  program=${NORMLAB:-$build_dir/normlab}
  if [ -z "${NORMLAB:-}" ]; then
    need_tools
    build normlab -DNORMLAB_TESTS=OFF
  fi
  cd "$root"
  mkdir -p "$out"
}

normlab() { "$program" "$@"; }

keep() {  # FILE... of $out
  if [ "${KEEP:-}" = 1 ]; then for file in "$@"; do cp "$out/$file" "$here/$file"; done; fi
  for file in "$@"; do echo "$root/$out/$file"; done
}
