#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "report/chart_axes.h"
#include "report/chart_text.h"
#include "report/compare.h"

namespace normlab {

namespace {

// The steps at which every run has a value of the metric.
std::vector<double> common_steps(const std::vector<Curve>& curves) {
  std::vector<double> common = curves.front().steps;
  for (const Curve& curve : curves) {
    std::vector<double> both;
    std::set_intersection(common.begin(), common.end(), curve.steps.begin(), curve.steps.end(),
                          std::back_inserter(both));
    common = std::move(both);
  }
  return common;
}

// The curve at the given steps only, all of which it has.
Curve at_steps(const Curve& curve, const std::vector<double>& steps) {
  Curve part;
  for (std::size_t i = 0; i < curve.steps.size(); ++i) {
    if (!std::binary_search(steps.begin(), steps.end(), curve.steps[i])) continue;
    part.steps.push_back(curve.steps[i]);
    part.values.push_back(curve.values[i]);
  }
  return part;
}

std::vector<Curve> curves_of(const std::vector<Run>& runs, std::string_view metric) {
  std::vector<Curve> curves;
  for (const Run& run : runs) curves.push_back(run_curve(run, metric));
  return curves;
}

bool same_end(const std::vector<Curve>& curves) {
  return std::all_of(curves.begin(), curves.end(), [&](const Curve& curve) {
    return curve.steps.empty() == curves.front().steps.empty() &&
           (curve.steps.empty() || curve.steps.back() == curves.front().steps.back());
  });
}

bool is_numeric(const std::string& cell) {
  return cell == "-" || parse_double(cell) || cell.rfind("±", 0) == 0 || cell.rfind("−", 0) == 0 ||
         cell.find("×10") != std::string::npos || cell.rfind("10", 0) == 0;
}

bool has_means(const std::vector<Run>& runs) {
  return std::any_of(runs.begin(), runs.end(), [](const Run& run) { return !run.seeds.empty(); });
}

// Of the runs in a mean, those that reached its last step.
std::vector<Run> finishers(const Run& mean) {
  std::vector<Run> out;
  std::copy_if(mean.seeds.begin(), mean.seeds.end(), std::back_inserter(out),
               [&](const Run& run) { return !run.steps.empty() && run.steps.back() == mean.steps.back(); });
  return out;
}

// The cells n and ±: how many runs reached the end, and the interval of their final losses.
std::vector<std::string> mean_cells(const Run& run) {
  if (run.seeds.empty()) return {"1", "-"};
  std::vector<double> finals;
  for (const Run& seed : finishers(run)) finals.push_back(curve_facts(run_curve(seed, "loss")).last);
  const Interval interval = mean_interval(finals);
  const bool known = std::isfinite(interval.half_width);
  return {finals.size() == run.seeds.size() ? str(finals.size()) : str(finals.size(), " of ", run.seeds.size()),
          known ? "±" + table_number(interval.half_width) : "-"};
}

// A config value in a cell: numbers of many digits (an alpha by its formula) cut to five.
std::string shown(const std::string& value) {
  const auto number = parse_double(value);
  return value.size() > 8 && number ? short_number(*number) : value;
}

}  // namespace

std::string table_number(std::optional<double> value) {
  if (!value) return "-";
  const double size = std::abs(*value);
  const bool plain = *value == 0 || (size >= 1e-3 && size < 1e5) || !std::isfinite(*value);
  return plain ? fixed(*value, 4) : short_number(*value);
}

std::vector<std::vector<std::string>> compare_rows(const std::vector<Run>& runs, std::string_view metric) {
  const std::vector<Curve> curves = curves_of(runs, metric);
  const std::vector<double> common = common_steps(curves);
  const std::vector<std::string> keys = compare_configs(runs).different;
  const bool other_metric = metric != "loss" && metric != "val_loss";
  const bool at_common = !same_end(curves) && !common.empty();

  std::vector<std::vector<std::string>> rows = {
      {"run", "verdict", "steps", "first loss", "best loss", "final loss", "val loss"}};
  const bool means = has_means(runs);
  if (means) {
    rows[0].insert(rows[0].begin() + 6, "±95%");
    rows[0].insert(rows[0].begin() + 2, "n");
  }
  if (other_metric) rows[0].push_back(str("final ", metric));
  if (at_common) rows[0].push_back(str(metric, " at ", step_text(common.back())));
  rows[0].insert(rows[0].end(), keys.begin(), keys.end());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    const CurveFacts loss = curve_facts(run_curve(run, "loss"));
    std::vector<std::string> row = {run.name, run.verdict, run.steps.empty() ? "0" : step_text(run.steps.back())};
    for (const double value : {loss.first, loss.best, loss.last}) row.push_back(table_number(value));
    if (means) {
      const std::vector<std::string> cells = mean_cells(run);
      row.push_back(cells[1]);
      row.insert(row.begin() + 2, cells[0]);
    }
    row.push_back(table_number(run.validation_loss));
    if (other_metric) row.push_back(table_number(curve_facts(curves[i]).last));
    if (at_common) row.push_back(table_number(curve_facts(at_steps(curves[i], common)).last));
    for (const std::string& key : keys) {
      const auto found = run.config.find(key);
      if (found == run.config.end())
        row.push_back("-");
      else
        row.push_back(shown(found->second));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> compare_notes(const std::vector<Run>& runs, std::string_view metric) {
  const std::vector<Curve> curves = curves_of(runs, metric);
  const std::vector<double> common = common_steps(curves);
  std::vector<std::string> notes, ends;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ends.push_back(str(runs[i].name, " ", curves[i].steps.empty() ? "has none" : step_text(curves[i].steps.back())));
  }
  const bool different_ends = !same_end(curves);
  if (different_ends) notes.push_back(str("The last steps with ", metric, " differ: ", join(ends, ", "), "."));
  const bool different_steps = std::any_of(curves.begin(), curves.end(),
                                           [&](const Curve& curve) { return curve.steps != curves.front().steps; });
  if (different_steps && common.empty()) {
    notes.push_back(str("No step has ", metric, " in all runs: final values are not taken at the same place."));
  } else if (different_ends) {
    const std::string what = common.size() == 1
                                 ? "the value at the only step"
                                 : str("the mean over the last ", std::min<std::size_t>(20, common.size()), " of the ",
                                       common.size(), " steps");
    notes.push_back(str(metric, " at ", step_text(common.back()), " is ", what,
                        " that all runs have; final values are those at each run's own end."));
  } else if (different_steps) {
    notes.push_back(str("The runs do not have the same steps; common to all: ", common.size(), "."));
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].seeds.empty()) {
      for (const std::string& note : mean_notes(runs[i], metric)) notes.push_back(note);
      continue;
    }
    std::optional<double> from;
    const std::string text = non_finite_text(curves[i], from);
    if (!text.empty()) notes.push_back(str(runs[i].name, ": ", metric, " ", text, "."));
  }
  return notes;
}

std::string compare_table(const std::vector<Run>& runs, std::string_view metric) {
  std::vector<std::vector<std::string>> rows = compare_rows(runs, metric);
  std::vector<bool> right(rows[0].size(), true);
  for (std::vector<std::string>& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      if (column > 0) row[column] = cut_text(row[column], 28);  // never the name: it is what tells runs apart
      if (&row != &rows[0] && !is_numeric(row[column])) right[column] = false;
    }
  }
  right[0] = right[1] = false;
  std::string text = aligned(rows, right);
  for (const std::string& note : compare_notes(runs, metric)) text += str("note: ", note, "\n");
  return text;
}

std::string summary_csv(const std::vector<Run>& runs, std::string_view metric) {
  const std::vector<std::string> keys = compare_configs(runs).different;
  const bool other_metric = metric != "loss" && metric != "val_loss";
  std::vector<std::string> header = {"run",       "n",          "verdict",    "steps",          "first_loss",
                                     "best_loss", "final_loss", "final_ci95", "validation_loss"};
  if (other_metric) header.push_back(str("final_", metric));
  header.insert(header.end(), keys.begin(), keys.end());
  std::string csv = csv_row(header);
  for (const Run& run : runs) {
    const CurveFacts loss = curve_facts(run_curve(run, "loss"));
    std::vector<double> finals;
    for (const Run& seed : finishers(run)) finals.push_back(curve_facts(run_curve(seed, "loss")).last);
    const double half = finals.empty() ? std::nan("") : mean_interval(finals).half_width;
    std::vector<std::string> row = {run.name, run.seeds.empty() ? "1" : str(finals.size()), run.verdict,
                                    run.steps.empty() ? "0" : step_text(run.steps.back())};
    for (const double value : {loss.first, loss.best, loss.last}) row.push_back(csv_cell(value));
    row.push_back(std::isfinite(half) ? csv_cell(half) : "");
    row.push_back(csv_cell(run.validation_loss));
    if (other_metric) row.push_back(csv_cell(curve_facts(run_curve(run, metric)).last));
    for (const std::string& key : keys) {
      const auto found = run.config.find(key);
      row.push_back(found == run.config.end() ? "" : found->second);
    }
    csv += csv_row(row);
  }
  return csv;
}

std::string compare_csv(const std::vector<Run>& runs, std::string_view metric) {
  const bool means = has_means(runs);
  const std::size_t width = means ? 3 : 1;  // cells per run
  std::vector<std::string> header = {"step"};
  std::map<double, std::vector<std::string>> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const char* what : {" mean", " ci95", " n"}) {
      if (means) header.push_back(runs[i].name + what);
    }
    if (!means) header.push_back(runs[i].name);
    const Curve curve = run_curve(runs[i], metric);
    const SeedSpread spread = seed_spread(runs[i], metric);
    for (const double step : runs[i].steps) rows[step].resize(width * runs.size());
    for (std::size_t at = 0; at < curve.steps.size(); ++at) {
      std::string* cells = &rows[curve.steps[at]][width * i];
      cells[0] = csv_cell(curve.values[at]);
      if (!means) continue;
      const bool single = runs[i].seeds.empty();
      if (!single && std::isfinite(spread.half_width[at])) cells[1] = csv_cell(spread.half_width[at]);
      cells[2] = single ? "1" : csv_cell(spread.n[at]);
    }
  }
  std::string text = csv_row(header);
  for (auto& [step, cells] : rows) {
    cells.insert(cells.begin(), step_text(step));
    text += csv_row(cells);
  }
  return text;
}

}  // namespace normlab
