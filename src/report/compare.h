// Several runs side by side: loaded from run directories or from any CSV with `step` and `loss`, as a text table, a
// chart, a CSV and a page. A metric is a column of metrics.csv; values belong to the step of their row, never to the
// row's number.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/chart.h"
#include "report/csv.h"

namespace normlab {

using FlatConfig = std::map<std::string, std::string>;  // "model.norm" -> "rmsnorm"

struct Run {
  std::string
      name;  // the directory's or file's name; where two are equal, with as much of the path as tells them apart
  std::filesystem::path path;
  CsvTable metrics;
  std::vector<double> steps;  // of each row, ascending
  FlatConfig config;          // empty where unknown

  // From summary.json; "-" and nothing without it.
  std::string verdict = "-";
  std::string reason;
  std::optional<double> validation_loss;  // without a word on it there, the last val_loss of the rows
  std::optional<double> context_free_entropy;
  std::optional<double> entropy_rate;
  std::optional<double> vocabulary;

  std::vector<Run> seeds;  // of a mean over seeds: its runs; `metrics` then holds the means
};

// Reads a config.toml as a flat map. Handed in, because this layer sits on core only.
using ConfigReader = std::function<FlatConfig(const std::filesystem::path&)>;

// `path`: a run directory (metrics.csv; summary.json and config.toml where present) or a CSV file. IoError where
// neither, where `step` or `loss` is missing, where a step is missing or not above the one before.
Run load_run(const std::filesystem::path& path, const ConfigReader& read_config = {});

// The last part of each path, where two are equal with as much before it as tells them apart; "a (1)", "a (2)" where
// nothing does.
std::vector<std::string> distinct_names(const std::vector<std::filesystem::path>& paths);

// All of them, with distinct names. What follows takes at least one run.
std::vector<Run> load_runs(const std::vector<std::filesystem::path>& paths, const ConfigReader& read_config = {});

// Runs whose configs differ in run.seed (and run.name) only become one run each, a mean at every step over those of
// them that have a value there; a value that is not finite makes the mean so. All others, and runs without a config,
// stay as they are. UsageError where two of one mean have the same seed.
std::vector<Run> mean_over_seeds(const std::vector<Run>& runs);

// Mean and half the width of its 95 % confidence interval by Student's t, nan for fewer than two values.
struct Interval {
  double mean = 0;
  double half_width = std::numeric_limits<double>::quiet_NaN();
};
Interval mean_interval(const std::vector<double>& values);

// The number that Student's t with so many degrees of freedom (>= 1) exceeds in size with a probability of 5 %.
double student_t_95(std::int64_t degrees);

// Of a mean over seeds: at every step its interval and over how many runs. `window` as in smoothed(), applied to each
// run by itself.
struct SeedSpread {
  std::vector<double> steps, mean, half_width;
  std::vector<std::int64_t> n;
};
SeedSpread seed_spread(const Run& run, std::string_view metric, std::int64_t window = 1);

// Which runs a mean is over, at which steps there are how many, and which of them are not finite.
std::vector<std::string> mean_notes(const Run& run, std::string_view metric);

// The measured values of a column with their steps. Not measured (an empty cell) is absent; nan and inf are present.
struct Curve {
  std::vector<double> steps;
  std::vector<double> values;
};
Curve run_curve(const Run& run, std::string_view metric);

// What a curve comes to. `best` is the smallest finite value: nan never wins; nan where none is finite. `last` is the
// mean of the last 20 values (all, where fewer). All nan for a curve without values.
struct CurveFacts {
  double first = 0;
  double best = 0;
  double last = 0;
};
CurveFacts curve_facts(const Curve& curve);

// "non-finite from step 30", with that step in `from`, where the curve ends so; "3 of 50 values not finite" where it
// recovered;
// "" where all are finite.
std::string non_finite_text(const Curve& curve, std::optional<double>& from);

// A step without exponent: 100000, where number() gives the shorter 1e+05.
std::string step_text(double step);

// Mean of the finite values at steps in (s - window, s] for every step s: trailing, so that the curve starts at the
// first value and, for a window of 20, ends at `last`. Where the value itself is not finite, so is the mean: gaps stay
// gaps. Window >= 1.
std::vector<double> smoothed(const Curve& curve, std::int64_t window);

// The config keys in which the runs that have a config differ, and those in which they agree; run.name is in neither.
struct ConfigKeys {
  std::vector<std::string> different;
  std::vector<std::string> same;
};
ConfigKeys compare_configs(const std::vector<Run>& runs);

// What stands in for the metric on paper: "Training loss", "Validation loss", else the column's name.
std::string metric_title(std::string_view metric);

// A cell of a table: four decimals, or a power of ten for what is very large or small; "-" for what is not known.
std::string table_number(std::optional<double> value);

// The table as text, header first: run, verdict, last step, first/best/final loss, validation loss, the final value of
// another metric, the metric at the last common step where the runs end at different steps, the config keys that
// differ. Where one of them is a mean: also how many runs reached its last step, and the 95 % interval of their final
// losses.
std::vector<std::vector<std::string>> compare_rows(const std::vector<Run>& runs, std::string_view metric);

// The same as a CSV for other programs, in full precision: run,n,verdict,steps,first_loss,best_loss,final_loss,
// final_ci95,validation_loss, `final_METRIC` for another metric, then the config keys that differ. An empty cell where a
// value is not known; n and the interval are over the seeds of a mean.
std::string summary_csv(const std::vector<Run>& runs, std::string_view metric);

// What a reader of a comparison must know: runs of different length, steps that do not match, values that are not
// finite.
std::vector<std::string> compare_notes(const std::vector<Run>& runs, std::string_view metric);

// For a terminal: the rows aligned, then the notes. A run without the metric is named in an IoError, here and below.
std::string compare_table(const std::vector<Run>& runs, std::string_view metric);

struct CompareOptions {
  std::int64_t smooth = 1;  // steps, see smoothed(); from 2 on the raw curve stands faint behind
  bool log_y = false;
  int width = 760;
};
Chart compare_chart(const std::vector<Run>& runs, std::string_view metric, const CompareOptions& options = {});
std::string compare_svg(const std::vector<Run>& runs, std::string_view metric, const CompareOptions& options = {});

// `step,RUN1,RUN2,...` over all steps of all runs; an empty cell where a run has no value. Where one of them is a mean,
// three columns each: `RUN mean,RUN ci95,RUN n`.
std::string compare_csv(const std::vector<Run>& runs, std::string_view metric);

// The runs that stand for many: `most` of them (>= 2) at equal distances in the order of their final values, the best
// and the worst among them, those that are not finite counted as worst. In that order; all of them, in their own, where
// there are no more.
std::vector<Run> spread_of(const std::vector<Run>& runs, std::string_view metric, std::size_t most);

// One self-contained page: the map where there is one, table, charts (linear and logarithmic), charts by layer where
// runs have a layers.csv, verdicts with their reasons, configs. Of more than 28 runs the charts show some and the
// tables are folded.
struct PhaseMap;
std::string compare_html(const std::vector<Run>& runs, std::string_view metric, std::int64_t smooth = 1,
                         const PhaseMap* map = nullptr);

}  // namespace normlab
