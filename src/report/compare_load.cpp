#include <algorithm>
#include <cmath>
#include <limits>

#include "core/files.h"
#include "core/json.h"
#include "core/text.h"
#include "normlab/error.h"
#include "report/compare.h"

namespace normlab {

namespace {

namespace fs = std::filesystem;

// A key that is absent, null or of another kind is not known: summaries of other versions stay readable.
std::optional<double> number_in(const Json& summary, std::string_view key) {
  const Json* value = summary.find(key);
  if (value == nullptr || value->kind != Json::Kind::kNumber) return std::nullopt;
  return value->number;
}

std::string text_in(const Json& summary, std::string_view key, const std::string& otherwise) {
  const Json* value = summary.find(key);
  return value != nullptr && value->kind == Json::Kind::kString ? value->string : otherwise;
}

void read_summary(const fs::path& path, Run& run) {
  const Json summary = parse_json(read_file(path), path.string());
  run.verdict = text_in(summary, "verdict", "-");
  run.reason = text_in(summary, "reason", "");
  // null in a summary means that it was not finite: then an earlier row must not stand in for it.
  if (summary.find("validation_loss") != nullptr) run.validation_loss = number_in(summary, "validation_loss");
  run.context_free_entropy = number_in(summary, "context_free_entropy");
  run.entropy_rate = number_in(summary, "entropy_rate");
  run.vocabulary = number_in(summary, "vocabulary");
}

std::vector<double> read_steps(const CsvTable& table) {
  std::vector<double> steps;
  const std::vector<std::optional<double>> cells = table.numbers("step");
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const auto fail = [&](const std::string& what) {
      throw IoError(str(table.file, ":", table.lines[row], ": row ", row + 1, ", column 'step': ", what));
    };
    if (!cells[row] || !std::isfinite(*cells[row])) fail("expected a number in every row");
    if (row > 0 && *cells[row] <= steps.back()) {
      fail(str(step_text(*cells[row]), " after ", step_text(steps.back()), ": steps must grow from row to row"));
    }
    steps.push_back(*cells[row]);
  }
  return steps;
}

// What a name can be built from: the path in parts, without the metrics.csv or layers.csv of a run directory and
// without ".csv".
std::vector<std::string> name_parts(const fs::path& path) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::absolute(path).lexically_normal()) {
    if (!part.empty() && part != part.root_directory()) parts.push_back(part.string());
  }
  if (parts.size() > 1 && (parts.back() == "metrics.csv" || parts.back() == "layers.csv")) parts.pop_back();
  if (parts.empty()) parts.push_back(path.string());
  const std::string& last = parts.back();
  if (last.size() > 4 && last.compare(last.size() - 4, 4, ".csv") == 0) parts.back().resize(last.size() - 4);
  return parts;
}

std::string last_parts(const std::vector<std::string>& parts, std::size_t count) {
  const std::size_t first = parts.size() - std::min(count, parts.size());
  return join({parts.begin() + static_cast<std::ptrdiff_t>(first), parts.end()}, "/");
}

std::string missing_metrics(const fs::path& path) {
  for (const auto& entry : fs::directory_iterator(path)) {
    if (fs::exists(entry.path() / "metrics.csv")) {
      return str(path.string(), ": holds no metrics.csv itself but run directories, such as ", entry.path().string(),
                 ": name these");
    }
  }
  return str(path.string(), ": no run directory, it holds no metrics.csv");
}

}  // namespace

Run load_run(const fs::path& path, const ConfigReader& read_config) {
  Run run;
  run.path = path;
  run.name = name_parts(path).back();
  const bool directory = fs::is_directory(path);
  if (directory && !fs::exists(path / "metrics.csv")) throw IoError(missing_metrics(path));
  run.metrics = read_csv(directory ? path / "metrics.csv" : path);
  run.steps = read_steps(run.metrics);
  const auto losses =
      run.metrics.numbers("loss");  // a damaged loss column is found here, not after a chart was written
  if (run.metrics.has("val_loss")) {
    const Curve validation = run_curve(run, "val_loss");
    if (!validation.values.empty()) run.validation_loss = validation.values.back();
  }
  if (directory && fs::exists(path / "summary.json")) read_summary(path / "summary.json", run);
  if (directory && read_config && fs::exists(path / "config.toml")) run.config = read_config(path / "config.toml");
  return run;
}

std::vector<std::string> distinct_names(const std::vector<fs::path>& paths) {
  std::vector<std::vector<std::string>> parts;
  std::vector<std::string> names;
  for (const fs::path& path : paths) parts.push_back(name_parts(path));
  // As many parts of the path as make the name the only one of its kind.
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::size_t count = 1, same = 0;
    for (; count <= parts[i].size(); ++count) {
      const auto equal = [&](const auto& other) { return last_parts(other, count) == last_parts(parts[i], count); };
      same = static_cast<std::size_t>(std::count_if(parts.begin(), parts.end(), equal));
      if (same == 1) break;
    }
    // The same run twice.
    const auto before = std::count(parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(i), parts[i]);
    names.push_back(same > 1 ? str(parts[i].back(), " (", before + 1, ")") : last_parts(parts[i], count));
  }
  return names;
}

std::vector<Run> load_runs(const std::vector<fs::path>& paths, const ConfigReader& read_config) {
  std::vector<Run> runs;
  for (const fs::path& path : paths) runs.push_back(load_run(path, read_config));
  const std::vector<std::string> names = distinct_names(paths);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].name = names[i];
  return runs;
}

Curve run_curve(const Run& run, std::string_view metric) {
  if (!run.metrics.has(metric)) {
    throw IoError(str("run ", quote(run.name, 200), " has no column ", quote(metric),
                      did_you_mean(metric, run.metrics.columns), "; ", run.metrics.file, " has ",
                      join(run.metrics.columns, ", ")));
  }
  Curve curve;
  const std::vector<std::optional<double>> cells = run.metrics.numbers(metric);
  for (std::size_t row = 0; row < cells.size(); ++row) {
    if (!cells[row]) continue;
    curve.steps.push_back(run.steps[row]);
    curve.values.push_back(*cells[row]);
  }
  return curve;
}

std::string step_text(double step) {
  const bool whole = step == std::floor(step) && std::abs(step) < 1e15;
  return whole ? str(static_cast<std::int64_t>(step)) : number(step);
}

std::string non_finite_text(const Curve& curve, std::optional<double>& from) {
  const auto finite = [](double value) { return std::isfinite(value); };
  const auto count = std::count_if(curve.values.begin(), curve.values.end(), finite);
  const auto size = static_cast<std::ptrdiff_t>(curve.values.size());
  if (count == size) return {};
  const auto tail = std::find_if(curve.values.rbegin(), curve.values.rend(), finite) - curve.values.rbegin();
  if (tail == 0) return str(size - count, " of ", size, " values not finite");
  from = curve.steps[static_cast<std::size_t>(size - tail)];
  return str("non-finite from step ", step_text(*from));
}

CurveFacts curve_facts(const Curve& curve) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  if (curve.values.empty()) return {kNone, kNone, kNone};
  CurveFacts facts{curve.values.front(), kNone, 0};
  for (const double value : curve.values) {
    if (std::isfinite(value) && !(facts.best <= value)) facts.best = value;
  }
  const std::size_t count = std::min<std::size_t>(20, curve.values.size());
  for (std::size_t i = curve.values.size() - count; i < curve.values.size(); ++i) facts.last += curve.values[i];
  facts.last /= static_cast<double>(count);
  return facts;
}

std::vector<double> smoothed(const Curve& curve, std::int64_t window) {
  std::vector<double> means;
  std::size_t first = 0;
  for (std::size_t i = 0; i < curve.values.size(); ++i) {
    while (curve.steps[first] <= curve.steps[i] - static_cast<double>(window)) ++first;
    // Summed anew each time: a running sum would carry the rounding of a spike of 1e30 along for ever.
    double sum = 0;
    std::size_t count = 0;
    for (std::size_t j = first; j <= i; ++j) {
      if (std::isfinite(curve.values[j])) sum += curve.values[j], ++count;
    }
    means.push_back(std::isfinite(curve.values[i]) ? sum / static_cast<double>(count) : curve.values[i]);
  }
  return means;
}

ConfigKeys compare_configs(const std::vector<Run>& runs) {
  std::map<std::string, std::vector<const std::string*>> values;  // per key, of every run that has a config
  std::size_t configured = 0;
  for (const Run& run : runs) {
    if (!run.config.empty()) ++configured;
    for (const auto& [key, value] : run.config) values[key].push_back(&value);
  }
  ConfigKeys keys;
  for (const auto& entry : values) {
    if (entry.first == "run.name") continue;
    const std::vector<const std::string*>& found = entry.second;
    const auto equal = [&](const std::string* value) { return *value == *found.front(); };
    const bool same = found.size() == configured && std::all_of(found.begin(), found.end(), equal);
    (same ? keys.same : keys.different).push_back(entry.first);
  }
  return keys;
}

}  // namespace normlab
