// normlab bench.
#include <cstdio>

#include "app/commands.h"
#include "core/files.h"
#include "core/parallel.h"
#include "core/text.h"
#include "kernels/kernels.h"
#include "lab/bench.h"

namespace normlab {

int command_bench(const Arguments& a) {
  const std::vector<const BenchGroup*> groups = find_bench_groups(a.positional);
  use_threads(a);
  BenchOptions options;
  options.threads = threads();
  options.seconds = a.number("--seconds", options.seconds, 0, 3600);
  const std::string csv = a.text("--csv");
  std::vector<BenchRow> rows;
  if (!csv.empty()) write_file_atomically(csv, bench_csv(rows));  // a name that cannot be written shows before the work

  const auto show = [&](const BenchRow& row) {
    print(bench_table_row(row));
    std::fflush(stdout);
    rows.push_back(row);
  };
  print(str("kernels ", kernels().name, ", up to ", options.threads, options.threads == 1 ? " thread" : " threads",
            "\n", bench_table_header()));
  for (const BenchGroup* group : groups) {
    const std::size_t first = rows.size();
    run_bench_group(*group, options, show);
    if (group->alike) print(bench_summary({rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end()}));
  }
  if (a.has("--peers")) run_bench_peers(options, show);
  if (!csv.empty()) write_file_atomically(csv, bench_csv(rows));
  return 0;
}

}  // namespace normlab
