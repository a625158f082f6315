// Axes of a chart: which range of the data is shown, where the ticks are, and what they are called.
#pragma once

#include <string>
#include <vector>

namespace normlab {

// Multiples of 1, 2 or 5 times a power of ten inside [low, high]: the finest such set with at most `most` members. low
// < high.
std::vector<double> nice_ticks(double low, double high, int most);

// For a logarithmic axis, 0 < low < high: powers of ten where at least three lie inside (every second, third ... of
// them where `most` asks for it), else 1, 2, 5 times powers of ten, else nice_ticks.
std::vector<double> log_ticks(double low, double high, int most);

// The part of the data an axis shows. One spike of 1e30 must not flatten everything else, so the ends are cut where
// leaving out a few values (1 % or 5 %) makes the range 20 times smaller, or many values (up to 75 %) 1000 to 10000
// times.
struct VisibleRange {
  double low = 0;  // both are values of the data
  double high = 0;
};
VisibleRange visible_range(std::vector<double> values);  // finite, at least one

struct Axis {
  double low = 0;  // in data units, low < high, both finite; both positive where `log`
  double high = 1;
  bool log = false;
  std::vector<double> ticks;        // inside [low, high], ascending
  std::vector<std::string> labels;  // one per tick

  // 0 at `low`, 1 at `high`, linear in value or in its logarithm. Finite for every finite value (positive, where
  // `log`).
  double place(double value) const;
};

// An axis from `low` to `high` (low <= high) with `padding` of the range added at both ends and at most `most` ticks.
// A range of zero is widened around its value. `whole`: ticks at whole numbers only.
Axis make_axis(double low, double high, double padding, bool log, int most, bool whole = false);

// A number for people: 2.7183, 0.05, 1.5×10³⁰, −3, nan. At most five significant digits.
std::string short_number(double value);

}  // namespace normlab
