#include "report/sensitivity.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

namespace {

struct Point {
  std::string text;
  double value = 0, loss = 0;
  bool good = false;
};

std::string group_of(const Run& run, const std::vector<std::string>& different, std::string_view key) {
  std::vector<std::string> parts;
  for (const std::string& other : different) {
    if (other == key || other == "run.seed") continue;
    const auto found = run.config.find(other);
    if (found != run.config.end()) parts.push_back(str(other, "=", found->second));
  }
  return parts.empty() ? "all" : join(parts, ", ");
}

Point point_of(const Run& run, std::string_view key, bool validation) {
  const auto found = run.config.find(std::string(key));
  const auto value = found == run.config.end() ? std::nullopt : parse_double(found->second);
  if (!value) throw UsageError(str("--sensitivity ", key, ": ", run.name, " has no number for it"));
  const CurveFacts loss = curve_facts(run_curve(run, "loss"));
  Point p;
  p.text = found->second, p.value = *value;
  p.good = run.verdict == "stable" || run.verdict == "spiked";
  const double last = validation ? *run.validation_loss : loss.last;
  p.loss = run.verdict == "diverged" || !(last < loss.first) ? loss.first : last;
  return p;
}

}  // namespace

std::vector<SensitivityRow> sensitivity(const std::vector<Run>& runs, std::string_view key) {
  const std::vector<std::string> different = compare_configs(runs).different;
  if (std::find(different.begin(), different.end(), key) == different.end()) {
    throw UsageError(str("--sensitivity ", key, ": the runs do not differ in it; they differ in ",
                         different.empty() ? "nothing" : join(different, ", ")));
  }
  std::vector<std::string> groups;
  for (const Run& run : runs) {
    const std::string group = group_of(run, different, key);
    if (std::find(groups.begin(), groups.end(), group) == groups.end()) groups.push_back(group);
  }
  std::vector<SensitivityRow> rows;
  for (const std::string& group : groups) {
    std::vector<Run> members;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(members),
                 [&](const Run& run) { return group_of(run, different, key) == group; });
    // A run that diverged has none, and needs none.
    const bool validation = std::all_of(members.begin(), members.end(), [](const Run& run) {
      return run.verdict == "diverged" || run.validation_loss.has_value();
    });
    std::vector<Point> points;
    for (const Run& run : members) points.push_back(point_of(run, key, validation));
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.value < b.value; });
    SensitivityRow row;
    row.group = group, row.runs = points.size(), row.validation = validation;
    row.best_loss = std::numeric_limits<double>::infinity(), row.largest_good = "-";
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (i > 0 && points[i].value == points[i - 1].value) {
        throw UsageError(str("--sensitivity ", key, ": two runs of ", group, " have ", points[i].text,
                             "; average seeds with --mean, choose the runs"));
      }
      if (points[i].loss < row.best_loss) row.best_loss = points[i].loss, row.best_at = points[i].text;
      if (points[i].good) row.largest_good = points[i].text;
    }
    for (const Point& p : points) row.sensitivity += (p.loss - row.best_loss) / static_cast<double>(points.size());
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string sensitivity_text(const std::vector<SensitivityRow>& rows, std::string_view key) {
  std::string text;
  for (const SensitivityRow& row : rows) {
    text += str(row.group, ": sensitivity ", fixed(row.sensitivity, 4), " over ", row.runs, " values of ", key,
                row.validation ? ", best validation loss " : ", best final loss ", fixed(row.best_loss, 4), " at ",
                row.best_at, ", largest that trains ", row.largest_good, "\n");
  }
  return text;
}

std::string sensitivity_csv(const std::vector<SensitivityRow>& rows) {
  std::string csv = "group,runs,sensitivity,best_loss,best_at,largest_good\n";
  for (const SensitivityRow& row : rows) {
    csv += csv_row({row.group, std::to_string(row.runs), csv_cell(row.sensitivity), csv_cell(row.best_loss),
                    row.best_at, row.largest_good});
  }
  return csv;
}

}  // namespace normlab
