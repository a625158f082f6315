#include "report/chart_axes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>

#include "core/text.h"

namespace normlab {

namespace {

// Beyond this the difference of two doubles may overflow.
constexpr double kLargest = 1e300;

// A range this small against its own values is rounding noise: doubles carry 16 digits.
constexpr double kZeroRange = 1e-10;

int exponent_of(double value) { return static_cast<int>(std::floor(std::log10(value) + 1e-12)); }

// 10^exponent; one rounding only, so that 3 / 10^1 is the 0.3 of the source.
double times_power(double mantissa, int exponent) {
  return exponent < 0 ? mantissa / std::pow(10.0, -exponent) : mantissa * std::pow(10.0, exponent);
}

struct TickStep {
  int mantissa = 1;  // 1, 2, 5
  int exponent = 0;
  double size() const { return times_power(mantissa, exponent); }
};

TickStep tick_step(double low, double high, int most) {
  // The number of multiples inside varies with where the range starts; range / most is the finest step that can do.
  for (TickStep step{
           1,
           exponent_of((high - low) / most),
       };
       ;) {
    const double first = std::ceil(low / step.size() - 1e-9), last = std::floor(high / step.size() + 1e-9);
    if (last - first + 1 <= most) return step;
    if (step.mantissa == 5)
      step.mantissa = 1, ++step.exponent;
    else
      step.mantissa = step.mantissa == 1 ? 2 : 5;
  }
}

std::vector<double> multiples(TickStep step, double low, double high) {
  std::vector<double> ticks;
  const auto first = static_cast<std::int64_t>(std::ceil(low / step.size() - 1e-9));
  const auto last = static_cast<std::int64_t>(std::floor(high / step.size() + 1e-9));
  for (std::int64_t i = first; i <= last; ++i) {
    ticks.push_back(times_power(static_cast<double>(i * step.mantissa), step.exponent));
  }
  return ticks;
}

std::string power_of_ten(int exponent) {
  static constexpr std::array<const char*, 10> kRaised = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = "10";
  for (const char c : std::to_string(exponent)) out += c == '-' ? "⁻" : kRaised[static_cast<std::size_t>(c - '0')];
  return out;
}

std::string with_minus(std::string digits) {
  if (digits[0] == '-') digits.replace(0, 1, "−");
  return digits;
}

std::string without_zeros(std::string digits) {
  if (digits.find('.') == std::string::npos) return digits;
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

// digits × 10^exponent, "10⁵" for a one.
std::string scientific(const std::string& digits, int exponent) {
  return digits == "1" ? power_of_ten(exponent) : str(with_minus(digits), "×", power_of_ten(exponent));
}

// All labels of one axis show the same number of decimals.
std::vector<std::string> linear_labels(const std::vector<double>& ticks, TickStep step) {
  double largest = 0;
  for (const double tick : ticks) largest = std::max(largest, std::abs(tick));
  std::vector<std::string> labels;
  for (const double tick : ticks) {
    if (largest >= 1e7 || (largest > 0 && largest < 1e-3)) {
      const int exponent = exponent_of(largest);
      const int decimals = std::max(0, exponent - step.exponent);
      labels.push_back(tick == 0 ? "0" : scientific(fixed(times_power(tick, -exponent), decimals), exponent));
    } else if (step.exponent >= 0 && largest >= 1e4) {
      labels.push_back(with_minus(grouped(static_cast<std::int64_t>(std::llround(tick)))));
    } else {
      labels.push_back(with_minus(fixed(tick, std::max(0, -step.exponent))));
    }
  }
  return labels;
}

// Cuts the upper end; `sorted` ascending.
double visible_top(const std::vector<double>& sorted) {
  struct Cut {
    double keep;  // share of the values that stay
    double gain;  // by how much the range must shrink for that
  };
  static constexpr std::array<Cut, 5> kCuts = {{{0.99, 20}, {0.95, 20}, {0.75, 1000}, {0.5, 1000}, {0.25, 10000}}};
  const double count = static_cast<double>(sorted.size()), low = sorted.front();
  double high = sorted.back();
  for (const auto& [keep, gain] : kCuts) {
    const double kept_top = sorted[static_cast<std::size_t>(std::ceil(keep * count)) - 1];
    // Few values are no basis for calling one of them a spike, unless it is a huge one.
    const double needed = count < 20 ? std::max(gain, 1000.0) : gain;
    // A flat curve has no range of its own; 5 % of its value serves, but not as a reason to drop a large part of the
    // data.
    const double scale = keep < 0.75 ? kept_top - low : std::max(kept_top - low, 0.05 * std::abs(kept_top));
    if (!(scale > 0) || high - low <= needed * scale) continue;
    // What lies just above the quantile still belongs to the curve.
    high = *std::prev(std::upper_bound(sorted.begin(), sorted.end(), low + 2 * scale));
  }
  return high;
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int most) {
  return multiples(tick_step(low, high, most), low, high);
}

std::vector<double> log_ticks(double low, double high, int most) {
  const int first = static_cast<int>(std::ceil(std::log10(low) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log10(high) + 1e-9));
  std::vector<double> ticks;
  if (last - first + 1 >= 3) {
    const int stride = (last - first + most) / most;
    for (int power = first; power <= last; ++power) {
      if (power % stride == 0) ticks.push_back(times_power(1, power));
    }
    return ticks;
  }
  for (int power = first - 1; power <= last; ++power) {
    for (const int mantissa : {1, 2, 5}) {
      const double tick = times_power(mantissa, power);
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks.size() >= 3 ? ticks : nice_ticks(low, high, most);
}

VisibleRange visible_range(std::vector<double> values) {
  for (double& value : values) value = std::clamp(value, -kLargest, kLargest);
  std::sort(values.begin(), values.end());
  const double high = visible_top(values);
  // The lower end is the upper end of the mirrored values that are left.
  std::vector<double> mirrored;
  for (auto at = std::upper_bound(values.begin(), values.end(), high); at != values.begin();) {
    mirrored.push_back(-*--at);
  }
  return {-visible_top(mirrored), high};
}

double Axis::place(double value) const {
  if (log) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
  return (std::clamp(value, -kLargest, kLargest) - low) / (high - low);
}

Axis make_axis(double low, double high, double padding, bool log, int most, bool whole) {
  Axis axis;
  axis.log = log;
  low = std::clamp(low, log ? 1 / kLargest : -kLargest, kLargest);
  high = std::clamp(high, low, kLargest);
  if (log) {
    const bool flat = high / low < 1 + kZeroRange;
    const double factor = flat ? 1.25 : std::exp(padding * std::log(high / low));
    axis.low = std::max(low / factor, 1e-305);
    axis.high = std::min(high * factor, 1e305);
    axis.ticks = log_ticks(axis.low, axis.high, most);
    if (axis.ticks == nice_ticks(axis.low, axis.high, most)) {
      axis.labels = linear_labels(axis.ticks, tick_step(axis.low, axis.high, most));
    } else {
      for (const double tick : axis.ticks) axis.labels.push_back(short_number(tick));
    }
    return axis;
  }
  const double size = std::max(std::abs(low), std::abs(high));
  if (size < 1 / kLargest) return make_axis(-1, 1, 0, false, most, whole);
  const bool flat = high - low <= kZeroRange * size;
  const double extra = !flat ? padding * (high - low) : whole ? 1 : 0.1 * size;
  axis.low = low - extra;
  axis.high = high + extra;
  TickStep step = tick_step(axis.low, axis.high, most);
  if (whole && step.exponent < 0) step = {};
  axis.ticks = multiples(step, axis.low, axis.high);
  axis.labels = linear_labels(axis.ticks, step);
  return axis;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return number(value);
  if (value == 0) return "0";
  const int exponent = exponent_of(std::abs(value));
  if (exponent < -3 || exponent >= 5) {
    return scientific(without_zeros(fixed(times_power(value, -exponent), 4)), exponent);
  }
  return with_minus(without_zeros(fixed(value, 4 - exponent)));
}

}  // namespace normlab
