// What the tests of the kernels share: the tables that can run here, and rows with guards around them.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "../test.h"
#include "core/rng.h"
#include "kernels/kernels.h"

namespace normlab {

inline constexpr double kUnit = std::numeric_limits<real>::epsilon() / 2;  // largest relative error of one rounding
inline constexpr real kNan = std::numeric_limits<real>::quiet_NaN();
inline constexpr real kInf = std::numeric_limits<real>::infinity();

// Higham's bound for n roundings in a row.
inline double roundings(double n) { return n * kUnit / (1 - n * kUnit); }

// Tables this processor supports; the others are skipped aloud, once.
inline std::vector<const KernelTable*> runnable_tables() {
  static bool told = false;
  std::vector<const KernelTable*> result;
  for (const KernelTable* table : all_kernels()) {
    if (table->supported())
      result.push_back(table);
    else if (!told)
      WARN("SKIPPED, not a pass: this processor does not support the kernels " << table->name);
  }
  told = true;
  return result;
}

// `size` numbers that begin off any alignment, with NaN before and behind: a kernel that reads them into a result shows
// it, and `intact` tells whether one was written.
class Guarded {
 public:
  explicit Guarded(std::int64_t size, real value = 0) : cells_(static_cast<std::size_t>(size) + 2 * kGuard, kNan) {
    for (std::int64_t i = 0; i < size; ++i) begin()[i] = value;
  }
  Guarded(const std::vector<real>& values) : Guarded(static_cast<std::int64_t>(values.size())) {
    std::copy(values.begin(), values.end(), begin());
  }
  real* begin() { return cells_.data() + kGuard; }
  const real* begin() const { return cells_.data() + kGuard; }
  real& operator[](std::int64_t i) { return begin()[i]; }
  real operator[](std::int64_t i) const { return begin()[i]; }
  std::int64_t size() const { return static_cast<std::int64_t>(cells_.size() - 2 * kGuard); }
  std::vector<real> values() const { return {begin(), begin() + size()}; }
  bool intact() const {
    const auto untouched = [](real x) { return std::isnan(x); };
    return std::all_of(cells_.begin(), cells_.begin() + kGuard, untouched) &&
           std::all_of(cells_.end() - kGuard, cells_.end(), untouched);
  }

 private:
  static constexpr std::ptrdiff_t kGuard = 33;
  std::vector<real> cells_;
};

inline Guarded normal_row(std::int64_t size, std::uint64_t seed, double mean = 0, double deviation = 1) {
  const Rng rng(seed, stream_id("kernel test"));
  Guarded row(size);
  for (std::int64_t i = 0; i < size; ++i)
    row[i] = static_cast<real>(mean + deviation * rng.normal(static_cast<std::uint64_t>(i)));
  return row;
}

}  // namespace normlab
