// What bench prints: the table for people, the CSV for programs.
#include <cmath>
#include <map>

#include "core/text.h"
#include "kernels/kernels.h"
#include "lab/bench.h"
#include "report/csv.h"

namespace normlab {

namespace {

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width > text.size() ? width - text.size() : 0, ' ') + text;
}

// Four significant digits or the whole number.
std::string shown(double value) {
  const double size = std::abs(value);
  return fixed(value, size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

std::string spread(const MedianRange& s) {
  return str(fixed(s.median, 3), " (", fixed(s.min, 3), " .. ", fixed(s.max, 3), ")");
}

}  // namespace

std::string bench_table_header() {
  return str(left("group", 12), left("what", 36), "threads ", right("measured", 10), " ", left("", 9),
             left("against", 34), "ratio: median (min .. max)\n");
}

std::string bench_table_row(const BenchRow& r) {
  const std::string start = str(left(r.group, 12), left(r.name, 36), right(std::to_string(r.threads), 7), " ");
  if (r.skipped) return str(start, right("skipped", 10), "\n");
  std::string row = str(start, right(shown(r.value.median), 10), " ", left(r.unit, 9));
  if (!r.against.empty()) {
    row += str(left(str(r.against, " ", shown(r.against_value), " ", r.against_unit), 34), spread(r.ratio));
  }
  while (row.back() == ' ') row.pop_back();
  return row + "\n";
}

std::string bench_summary(const std::vector<BenchRow>& rows) {
  std::map<std::pair<int, std::string>, std::vector<double>> ratios;
  for (const BenchRow& r : rows) {
    if (!r.against.empty()) ratios[{r.threads, r.against}].push_back(r.ratio.median);
  }
  std::string out;
  for (const auto& [key, values] : ratios) {
    if (values.size() < 3) continue;
    const MedianRange s = median_range(values);
    out += str(left(rows[0].group, 12), left(str("all ", values.size(), " medians"), 36),
               right(std::to_string(key.first), 7), " ", left("", 20), left(key.second, 34), "median ",
               fixed(s.median, 3), ", worst ", fixed(s.min, 3), "\n");
  }
  return out;
}

std::string bench_csv(const std::vector<BenchRow>& rows) {
  std::string out = csv_row("group", "name", "threads", "kernels", "unit", "value", "value_min", "value_max", "against",
                            "against_unit", "against_value", "ratio", "ratio_min", "ratio_max", "repetitions");
  for (const BenchRow& r : rows) {
    const auto if_measured = [&](double x) { return r.skipped ? std::optional<double>() : std::optional<double>(x); };
    const auto if_compared = [&](double x) {
      return r.against.empty() ? std::optional<double>() : std::optional<double>(x);
    };
    out += csv_row(r.group, r.name, r.threads, kernels().name, r.unit, if_measured(r.value.median),
                   if_measured(r.value.min), if_measured(r.value.max), r.against, r.against_unit,
                   if_compared(r.against_value), if_compared(r.ratio.median), if_compared(r.ratio.min),
                   if_compared(r.ratio.max), r.repetitions);
  }
  return out;
}

}  // namespace normlab
