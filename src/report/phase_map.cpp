#include "report/phase_map.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "core/text.h"
#include "normlab/error.h"
#include "report/chart_text.h"

namespace normlab {

namespace {

const std::string kNoValue = "-";  // of a run without the key, as in the table of compare

std::string value_of(const Run& run, const std::string& key) {
  const auto found = run.config.find(key);
  return found == run.config.end() ? kNoValue : found->second;
}

std::vector<std::string> axis_values(const std::vector<Run>& runs, const std::string& key) {
  std::vector<std::string> numbers, others;
  for (const Run& run : runs) {
    const std::string value = key.empty() ? "" : value_of(run, key);
    std::vector<std::string>& list = parse_double(value) ? numbers : others;
    if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
  }
  std::stable_sort(numbers.begin(), numbers.end(), [](const std::string& a, const std::string& b) {
    return parse_double(a).value() < parse_double(b).value();
  });
  numbers.insert(numbers.end(), others.begin(), others.end());
  return numbers;
}

// The keys an axis can be.
std::vector<std::string> varying_keys(const std::vector<Run>& runs) {
  std::vector<std::string> keys = compare_configs(runs).different;
  std::erase(keys, "run.seed");
  return keys;
}

void check_key(const std::vector<Run>& runs, const std::string& key) {
  const std::vector<std::string> varying = varying_keys(runs);
  if (std::find(varying.begin(), varying.end(), key) != varying.end()) return;
  const std::string rest =
      varying.empty() ? "; the runs differ in no key" : "; the runs differ in " + join(varying, ", ");
  const auto known = runs[0].config.find(key);
  if (known == runs[0].config.end()) {
    std::vector<std::string> all;
    for (const auto& entry : runs[0].config) all.push_back(entry.first);
    throw UsageError(str("--map: no run has the key ", quote(key), did_you_mean(key, all), rest));
  }
  if (key == "run.seed" || key == "run.name")
    throw UsageError(str("--map: ", key, " cannot be an axis: a cell is the mean over seeds", rest));
  throw UsageError(str("--map: ", key, " is ", quote(known->second), " in all runs", rest));
}

// From good to bad. What is not known is worse than stable, so that it is not hidden.
int badness(const std::string& verdict) {
  static const std::array<std::string, 6> kOrder = {"stable", "-", "interrupted", "spiked", "stalled", "diverged"};
  const auto at = std::find(kOrder.begin(), kOrder.end(), verdict);
  return at == kOrder.end() ? 1 : static_cast<int>(at - kOrder.begin());
}

// Of the validation loss: that after the last step, which summary.json has, not the last that a row happens to have.
std::optional<double> value_at_end(const Run& run, std::string_view metric) {
  const Curve curve = run_curve(run, metric);
  if (metric == "val_loss" && run.validation_loss) return run.validation_loss;
  return curve.values.empty() ? std::nullopt : std::optional(curve_facts(curve).last);
}

MapCell cell_of(const std::vector<Run>& runs, std::string_view metric) {
  MapCell cell;
  double sum = 0;
  int count = 0;
  for (const Run& run : runs) {
    cell.runs.push_back(run.name);
    const std::optional<double> final_value = value_at_end(run, metric);
    if (run.verdict != "diverged" && final_value) sum += *final_value, ++count;
    if (cell.verdict.empty() || badness(run.verdict) > badness(cell.verdict)) cell.verdict = run.verdict;
  }
  for (const Run& run : runs) {
    if (run.verdict == cell.verdict) ++cell.agree;
  }
  if (count > 0) cell.value = sum / count;
  return cell;
}

// The keys that differ besides the axes, by the axis they go with: a norm's own eps goes with model.norm.
std::string other_keys(const std::vector<Run>& runs, const PhaseMap& map) {
  std::map<std::string, std::vector<std::string>> by_axis;  // "" = with none
  for (const std::string& key : varying_keys(runs)) {
    if (key == map.x_key || key == map.y_key) continue;
    const auto goes_with = [&](const std::string& axis) {
      std::map<std::string, std::set<std::string>> seen;
      for (const Run& run : runs) seen[value_of(run, axis)].insert(value_of(run, key));
      return !axis.empty() && std::all_of(seen.begin(), seen.end(), [](const auto& e) { return e.second.size() == 1; });
    };
    by_axis[goes_with(map.x_key) ? map.x_key : goes_with(map.y_key) ? map.y_key : ""].push_back(key);
  }
  std::vector<std::string> parts;
  for (const auto& [axis, keys] : by_axis)
    parts.push_back(join(keys, ", ") + (axis.empty() ? "" : str(" (with ", axis, ")")));
  return join(parts, "; ");
}

// At most so many names are listed one by one.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 12;
  if (names.size() <= kMost) return join(names, "; ");
  return str(join({names.begin(), names.begin() + kMost}, "; "), " and ", names.size() - kMost, " more");
}

// Values above the upper quartile by more than ten times the distance of the quartiles: models without a norm end at
// 1e4 and more.
void mark_beyond(PhaseMap& map) {
  std::vector<double> values;
  for (const MapCell& cell : map.cells)
    if (cell.on_scale()) values.push_back(*cell.value);
  if (values.size() < 8) return;
  std::sort(values.begin(), values.end());
  const double lower = values[values.size() / 4], upper = values[values.size() * 3 / 4];
  std::size_t count = 0;
  for (MapCell& cell : map.cells) {
    cell.beyond = upper > lower && cell.on_scale() && *cell.value > upper + 10 * (upper - lower);
    count += cell.beyond ? 1 : 0;
  }
  if (count > 0) {
    map.notes.push_back(str(count, count == 1 ? " value lies" : " values lie", " far above the others, ",
                            fixed(upper, 2), " and less for three in four, and outside the scale."));
  }
}

void add_notes(const std::vector<Run>& runs, PhaseMap& map) {
  std::vector<std::string> missing, without;
  const std::string others = other_keys(runs, map);
  if (!others.empty()) map.notes.push_back(str("Besides the axes the runs differ in ", others, "."));
  std::size_t most = 0;
  for (std::size_t y = 0; y < map.ys.size(); ++y) {
    for (std::size_t x = 0; x < map.xs.size(); ++x) {
      const MapCell& cell = map.at(x, y);
      const std::string place =
          str(map.x_key, " = ", map.xs[x], map.y_key.empty() ? "" : str(", ", map.y_key, " = ", map.ys[y]));
      if (cell.runs.empty()) missing.push_back(place);
      if (!cell.runs.empty() && !cell.value && cell.verdict != "diverged") without.push_back(place);
      most = std::max(most, cell.runs.size());
    }
  }
  if (most > 1) {
    map.notes.push_back(
        str("A cell is the mean over its runs, which differ in run.seed only, without those that "
            "diverged, and has their worst verdict: 1/3 = one of three has it."));
  }
  if (!missing.empty())
    map.notes.push_back(str("No run for ", missing.size(), " of ", map.cells.size(), " cells: ", listed(missing), "."));
  if (!without.empty()) map.notes.push_back(str("No ", map.metric, " measured: ", listed(without), "."));
}

}  // namespace

bool MapCell::on_scale() const { return value && std::isfinite(*value) && verdict != "diverged" && !beyond; }

std::vector<std::size_t> PhaseMap::rows() const {
  std::vector<std::size_t> order;
  for (std::size_t y = 0; y < ys.size(); ++y) order.push_back(y);
  if (std::all_of(ys.begin(), ys.end(), [](const std::string& value) { return parse_double(value).has_value(); }))
    std::reverse(order.begin(), order.end());
  return order;
}

PhaseMap phase_map(const std::vector<Run>& runs, std::string_view metric, std::string_view keys) {
  const std::vector<std::string> parts = split(keys, ',');
  PhaseMap map;
  map.metric = metric;
  map.x_key = trim(parts[0]);
  if (parts.size() > 1) map.y_key = trim(parts[1]);
  if (parts.size() > 2 || map.x_key.empty() || (parts.size() > 1 && map.y_key.empty()) || map.x_key == map.y_key)
    throw UsageError(str("--map: ", quote(keys), ": expected one key or two different ones, X_KEY,Y_KEY"));
  for (const Run& run : runs) {
    if (run.config.empty())
      throw UsageError(str("--map: run ", quote(run.name, 200), " has no config.toml, so it has no place on a map"));
  }
  check_key(runs, map.x_key);
  if (!map.y_key.empty()) check_key(runs, map.y_key);

  map.xs = axis_values(runs, map.x_key);
  map.ys = axis_values(runs, map.y_key);
  map.cells.resize(map.xs.size() * map.ys.size());
  for (const Run& mean : mean_over_seeds(runs)) {
    const std::vector<Run> members = mean.seeds.empty() ? std::vector<Run>{mean} : mean.seeds;
    const auto index = [&](const std::vector<std::string>& values, const std::string& key) {
      return std::find(values.begin(), values.end(), key.empty() ? "" : value_of(mean, key)) - values.begin();
    };
    MapCell& cell = map.cells[static_cast<std::size_t>(index(map.ys, map.y_key)) * map.xs.size() +
                              static_cast<std::size_t>(index(map.xs, map.x_key))];
    if (!cell.runs.empty()) {
      const auto other =
          std::find_if(runs.begin(), runs.end(), [&](const Run& run) { return run.name == cell.runs[0]; });
      throw UsageError(str("--map: runs ", quote(other->name, 200), " and ", quote(members[0].name, 200),
                           " fall into one cell but differ in ", join(varying_keys({*other, members[0]}), ", "),
                           ": a mean over them would hide that"));
    }
    cell = cell_of(members, metric);
  }
  mark_beyond(map);
  add_notes(runs, map);
  return map;
}

std::string map_number(const PhaseMap& map, double value) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const MapCell& cell : map.cells) {
    if (cell.on_scale()) low = std::min(low, *cell.value), high = std::max(high, *cell.value);
  }
  const double size = std::abs(value);
  if (!std::isfinite(value) || size >= 1e5 || (size > 0 && size < 1e-3)) return table_number(value);
  // A hundredth of the range, and never more than the four decimals of the other tables.
  if (value > high) return fixed(value, value < 100 ? 2 : 0);  // beyond the scale
  const int decimals = high > low ? std::clamp(2 - static_cast<int>(std::floor(std::log10(high - low))), 0, 4) : 2;
  return fixed(value, decimals);
}

std::string map_text(const PhaseMap& map, const MapCell& cell) {
  if (cell.runs.empty()) return kNoValue;
  std::string text = cell.value ? map_number(map, *cell.value) + " " : "";
  text += cell.verdict == kNoValue ? "?" : cell.verdict;
  return cell.runs.size() > 1 ? str(text, " ", cell.agree, "/", cell.runs.size()) : text;
}

std::string map_table(const PhaseMap& map) {
  std::vector<std::vector<std::string>> rows = {{map.y_key.empty() ? map.x_key : str(map.y_key, " \\ ", map.x_key)}};
  rows[0].insert(rows[0].end(), map.xs.begin(), map.xs.end());
  for (const std::size_t y : map.rows()) {
    rows.push_back({map.y_key.empty() ? map.metric : map.ys[y]});
    for (std::size_t x = 0; x < map.xs.size(); ++x) rows.back().push_back(map_text(map, map.at(x, y)));
  }
  std::string text = str("final ", map.metric, ", verdict\n", aligned(rows, std::vector<bool>(rows[0].size(), false)));
  for (const std::string& note : map.notes) text += str("note: ", note, "\n");
  return text;
}

std::string map_csv(const PhaseMap& map) {
  std::vector<std::string> header = {map.x_key, map.y_key, map.metric, "verdict", "agree", "n", "runs"};
  if (map.y_key.empty()) header.erase(header.begin() + 1);
  std::string text = csv_row(header);
  for (std::size_t y = 0; y < map.ys.size(); ++y) {
    for (std::size_t x = 0; x < map.xs.size(); ++x) {
      const MapCell& cell = map.at(x, y);
      std::vector<std::string> row = {map.xs[x],
                                      map.ys[y],
                                      csv_cell(cell.value),
                                      cell.verdict,
                                      csv_cell(cell.agree),
                                      csv_cell(cell.runs.size()),
                                      join(cell.runs, " ")};
      if (map.y_key.empty()) row.erase(row.begin() + 1);
      text += csv_row(row);
    }
  }
  return text;
}

}  // namespace normlab
