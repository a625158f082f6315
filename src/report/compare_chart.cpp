#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "report/compare.h"

namespace normlab {

namespace {

struct Level {
  double value = 0;
  std::vector<std::string> data;   // distinct sources of the runs that have it
  std::vector<std::string> names;  // of these runs
};

void add_once(std::vector<std::string>& list, const std::string& item) {
  if (!item.empty() && std::find(list.begin(), list.end(), item) == list.end()) list.push_back(item);
}

// The distinct values of one reference over all runs. What reads the same at two decimals is one line: two would not be
// seen.
std::vector<Level> levels_of(const std::vector<Run>& runs,
                             const std::function<std::optional<double>(const Run&)>& value_of) {
  std::vector<Level> levels;
  for (const Run& run : runs) {
    const std::optional<double> value = value_of(run);
    if (!value || !std::isfinite(*value)) continue;
    const auto same = [&](const Level& level) { return fixed(level.value, 2) == fixed(*value, 2); };
    auto level = std::find_if(levels.begin(), levels.end(), same);
    if (level == levels.end()) level = levels.insert(level, Level{*value, {}, {}});
    const auto source = run.config.find("data.source");
    add_once(level->data, source == run.config.end() ? "" : source->second);
    add_once(level->names, run.name);
  }
  return levels;
}

// What the level belongs to: its data, or, where two levels share that, its runs.
std::string owner(const std::vector<Level>& levels, const Level& level) {
  const auto same_data = [&](const Level& other) { return other.data == level.data; };
  if (!level.data.empty() && std::count_if(levels.begin(), levels.end(), same_data) == 1) return join(level.data, ", ");
  return level.names.size() == 1 ? level.names[0] : str(level.names[0], " and ", level.names.size() - 1, " more");
}

void add_lines(std::vector<ChartLine>& lines, const std::string& label, const std::vector<Level>& levels) {
  for (const Level& level : levels) {
    const std::string whose = levels.size() > 1 ? str(" (", owner(levels, level), ")") : "";
    lines.push_back({level.value, str(label, fixed(level.value, 2), whose)});
  }
}

}  // namespace

std::string metric_title(std::string_view metric) {
  if (metric == "loss") return "Training loss";
  if (metric == "val_loss") return "Validation loss";
  return std::string(metric);
}

Chart compare_chart(const std::vector<Run>& runs, std::string_view metric, const CompareOptions& options) {
  const bool is_loss = metric == "loss" || metric == "val_loss";
  Chart chart;
  chart.title = metric_title(metric);
  if (options.smooth > 1) chart.title += str(", mean over ", options.smooth, " steps");
  chart.x_label = "step";
  chart.y_label = is_loss ? "loss (nats per token)" : std::string(metric);
  chart.log_y = options.log_y;
  chart.width = options.width;
  bool has_band = false;
  for (const Run& run : runs) {
    Curve curve = run_curve(run, metric);
    ChartSeries series;
    series.name = run.name;
    std::optional<double> from;
    const std::string text = non_finite_text(curve, from);
    if (from) {
      series.mark = ChartMark{*from, text};
    } else if (!text.empty()) {
      series.name += str(": ", text);
    }
    if (run.seeds.empty()) {
      series.y = smoothed(curve, options.smooth);
    } else {
      SeedSpread spread = seed_spread(run, metric, options.smooth);
      series.name += str(" (mean of ", run.seeds.size(), ")");
      series.y = std::move(spread.mean);
      series.band = std::move(spread.half_width);
      for (std::string& note : mean_notes(run, metric)) chart.notes.push_back(std::move(note));
      has_band = true;
    }
    series.x = std::move(curve.steps);
    if (options.smooth > 1) series.raw = std::move(curve.values);
    chart.series.push_back(std::move(series));
  }
  if (has_band) chart.notes.push_back("Bands: 95 % confidence interval of the mean (Student's t).");
  if (is_loss) {
    const auto ln_vocabulary = [](const Run& run) -> std::optional<double> {
      if (!run.vocabulary || !(*run.vocabulary > 0)) return std::nullopt;
      return std::log(*run.vocabulary);
    };
    add_lines(chart.lines, "ln V = ", levels_of(runs, ln_vocabulary));
    add_lines(chart.lines, "context-free entropy ",
              levels_of(runs, [](const Run& run) { return run.context_free_entropy; }));
    add_lines(chart.lines, "entropy rate ", levels_of(runs, [](const Run& run) { return run.entropy_rate; }));
  }
  return chart;
}

std::string compare_svg(const std::vector<Run>& runs, std::string_view metric, const CompareOptions& options) {
  return chart_svg(compare_chart(runs, metric, options));
}

}  // namespace normlab
