// normlab compare.
#include <algorithm>

#include "app/commands.h"
#include "core/files.h"
#include "core/text.h"
#include "lab/progress.h"
#include "report/compare.h"

namespace normlab {

FlatConfig read_flat_config(const std::filesystem::path& path) {
  FlatConfig flat;
  RunConfig config = resolve(read_config(path, {}).settings);
  for (const Field& f : fields(config)) {
    std::string text = f.text();
    if (text.size() >= 2 && text.front() == '"') text = text.substr(1, text.size() - 2);
    flat[f.key] = text;
  }
  return flat;
}

int command_compare(const Arguments& a) {
  refuse_overwriting({a.text("--svg"), a.text("--html"), a.text("--csv")}, {a.positional.begin(), a.positional.end()});
  std::vector<Run> runs = load_runs({a.positional.begin(), a.positional.end()}, read_flat_config);
  if (a.has("--mean")) {
    runs = mean_over_seeds(runs);
    if (std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.seeds.empty(); }))
      message("note", "no two of these runs differ in run.seed only, so nothing is averaged");
  }
  const std::string metric = a.text("--metric", "loss");
  CompareOptions options;
  options.smooth = a.integer("--smooth", 1, 1, 1000000);
  options.log_y = a.has("--log");
  print(compare_table(runs, metric));
  if (a.has("--svg")) write_file_atomically(a.text("--svg"), compare_svg(runs, metric, options));
  if (a.has("--html")) write_file_atomically(a.text("--html"), compare_html(runs, metric, options.smooth));
  if (a.has("--csv")) write_file_atomically(a.text("--csv"), compare_csv(runs, metric));
  return 0;
}

}  // namespace normlab
