# Sourced by the run scripts: finds or installs what a build needs, then builds. POSIX sh.
#   need_tools catch2?   compiler, cmake, ninja, and Catch2 where asked, through apt-get when missing and allowed
#   build TARGET CMAKE_OPTIONS...
#   experiment NAME      builds the program (NORMLAB=PATH: takes that one) for a folder that keeps its results; from then on `normlab`
#                        runs it, $here is the folder and $out, runs/NAME, has the results
#   over_training RUN    step,loss and, of all layers in layers.csv together, what their probes saw: a CSV that `normlab compare` reads
#   paired CSV AXIS A B  final losses at AXIS=B less those at AXIS=A, seed by seed: their mean, and 95 % interval by Student's t
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

over_training() {  # RUN_DIRECTORY
  awk -F, '
    FNR == 1 { file++; split("", column); for (i = 1; i <= NF; i++) column[$i] = i
               if (file == 2) print "step,loss,entropy_mean,entropy_least,logit_max,stream_rms,attention_rms,ffn_rms"
               next }
    file == 1 { loss[$column["step"]] = $column["loss"]; next }
    $column["step"] != step { if (rows) out(); step = $column["step"]; rows = attentions = sum = least = logit = stream = most["attention"] = most["ffn"] = 0 }
    { rows++
      if ($column["stream_rms"] + 0 > stream) stream = $column["stream_rms"] + 0
      if ($column["branch_rms"] + 0 > most[$column["sublayer"]]) most[$column["sublayer"]] = $column["branch_rms"] + 0
      if ($column["sublayer"] == "attention") {
        entropy = $column["attention_entropy"] + 0; sum += entropy
        if (!attentions++ || entropy < least) least = entropy
        if ($column["attention_logit_max"] + 0 > logit) logit = $column["attention_logit_max"] + 0
      } }
    function out() { print step "," (step in loss ? loss[step] : "") "," sum / attentions "," least "," logit "," stream "," most["attention"] "," most["ffn"] }
    END { if (rows) out() }' "$1/metrics.csv" "$1/layers.csv"
}

paired() {  # RESULTS.csv AXIS A B: as the names of runs have them, such as affine true false
  awk -v axis="$2" -v a="$3" -v b="$4" '
    NR == 1 { n = split($0, head, ","); for (i = 1; i <= n; i++) column[head[i]] = i; next }
    { split($0, part, "\""); split("-" part[3], field, ",")  # a name with commas stands in quotes
      value = rest = part[2]
      sub("(^|.*[,/])" axis "=", "", value); sub(",.*", "", value)
      sub(axis "=" value ",?", "", rest)
      loss[rest, value] = field[column["final_loss"]]; rests[rest] }
    END {
      split("12.706 4.303 3.182 2.776 2.571 2.447 2.365", t, " ")  # two-sided 95 %, degrees of freedom from 1
      for (rest in rests) {
        if (!((rest, a) in loss) || !((rest, b) in loss)) continue
        group = rest; sub(",?seed=.*", "", group); sub("[,/]*$", "", group)
        d = loss[rest, b] - loss[rest, a]; count[group]++; sum[group] += d; squares[group] += d * d
      }
      for (group in count) {
        n = count[group]; mean = sum[group] / n
        printf "%s%s=%s less %s: %+.4f", group (group == "" ? "" : ", "), axis, b, a, mean
        if (n > 1) printf " +- %.4f", t[n - 1] * sqrt((squares[group] - n * mean * mean) / (n - 1) / n)
        printf " (n = %d)\n", n
      }
    }' "$1" | sort
}

keep() {  # FILE... of $out
  if [ "${KEEP:-}" = 1 ]; then for file in "$@"; do cp "$out/$file" "$here/$file"; done; fi
  for file in "$@"; do echo "$root/$out/$file"; done
}
