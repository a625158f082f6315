// normlab compare.
#include <algorithm>

#include "app/commands.h"
#include "core/files.h"
#include "core/text.h"
#include "lab/progress.h"
#include "normlab/error.h"
#include "report/compare.h"
#include "report/layers.h"
#include "report/phase_map.h"
#include "report/sensitivity.h"

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

namespace {

// compare --layers: one quantity of layers.csv by layer.
int compare_layers(const Arguments& a) {
  for (const char* option : {"--map", "--metric", "--smooth", "--mean", "--table", "--sensitivity"}) {
    if (a.has(option)) throw UsageError(str("--layers does not go with ", option));
  }
  if (a.has("--html")) throw UsageError("--layers does not go with --html: the page without it has all quantities");
  const std::vector<std::filesystem::path> paths(a.positional.begin(), a.positional.end());
  const std::vector<std::string> names = distinct_names(paths);
  std::vector<LayerProfile> profiles;
  for (std::size_t i = 0; i < paths.size(); ++i) profiles.push_back(load_layers(paths[i], names[i]));
  const LayerTable table = layer_table(profiles, a.text("--layers"));
  print(layers_text(table));
  if (a.has("--svg")) write_file_atomically(a.text("--svg"), chart_svg(layers_chart(table, 760, a.has("--log"))));
  if (a.has("--csv")) write_file_atomically(a.text("--csv"), layers_csv(table));
  return 0;
}

// compare --sensitivity: what the result depends on, group by group.
int compare_sensitivity(const Arguments& a, const std::vector<Run>& runs) {
  for (const char* option : {"--map", "--metric", "--smooth", "--svg", "--html"}) {
    if (a.has(option)) throw UsageError(str("--sensitivity does not go with ", option));
  }
  const std::vector<SensitivityRow> rows = sensitivity(runs, a.text("--sensitivity"));
  print(sensitivity_text(rows, a.text("--sensitivity")));
  if (a.has("--csv")) write_file_atomically(a.text("--csv"), sensitivity_csv(rows));
  return 0;
}

}  // namespace

int command_compare(const Arguments& a) {
  refuse_overwriting({a.text("--svg"), a.text("--html"), a.text("--csv"), a.text("--table")},
                     {a.positional.begin(), a.positional.end()});
  if (a.has("--layers")) return compare_layers(a);
  std::vector<Run> runs = load_runs({a.positional.begin(), a.positional.end()}, read_flat_config);
  const std::string metric = a.text("--metric", "loss");
  std::optional<PhaseMap> map;
  if (a.has("--map")) map = phase_map(runs, metric, a.text("--map"));
  for (const char* option : {"--mean", "--smooth"}) {
    if (map && a.has(option) && !a.has("--html"))
      throw UsageError(str(option, " is about curves, which --map shows with --html only"));
  }
  if (a.has("--mean")) {
    runs = mean_over_seeds(runs);
    if (std::all_of(runs.begin(), runs.end(), [](const Run& run) { return run.seeds.empty(); }))
      message("note", "no two of these runs differ in run.seed only, so nothing is averaged");
  }
  if (a.has("--table")) write_file_atomically(a.text("--table"), summary_csv(runs, metric));
  if (a.has("--sensitivity")) return compare_sensitivity(a, runs);
  CompareOptions options;
  options.smooth = a.integer("--smooth", 1, 1, 1000000);
  options.log_y = a.has("--log");
  print(map ? map_table(*map) : compare_table(runs, metric));
  if (a.has("--svg")) {
    write_file_atomically(a.text("--svg"),
                          map ? map_svg(*map, {options.log_y, 760}) : compare_svg(runs, metric, options));
  }
  if (a.has("--html"))
    write_file_atomically(a.text("--html"), compare_html(runs, metric, options.smooth, map ? &*map : nullptr));
  if (a.has("--csv")) write_file_atomically(a.text("--csv"), map ? map_csv(*map) : compare_csv(runs, metric));
  return 0;
}

}  // namespace normlab
