#include "lab/find.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lab/verdict.h"

namespace normlab {

RampEnd ramp_end(const std::vector<double>& losses, std::optional<double> entropy) {
  std::vector<double> smooth;  // of the steps up to i; shorter at the beginning
  double sum = 0;
  for (std::size_t i = 0; i < losses.size() && std::isfinite(losses[i]); ++i) {
    sum += losses[i] - (i >= kSmooth ? losses[i - kSmooth] : 0);
    smooth.push_back(sum / static_cast<double>(std::min(i + 1, kSmooth)));
  }
  RampEnd end;
  if (smooth.empty()) {
    end.lost = !losses.empty();
    return end;
  }
  const double lowest = *std::min_element(smooth.begin(), smooth.end());
  end.trained = !entropy || lowest < (1 - kClear) * *entropy;
  const double bound = kSpike * (smooth[0] - lowest);
  double best = std::numeric_limits<double>::infinity();
  std::size_t good = 0;  // steps up to the last that is near the best so far
  for (std::size_t i = 0; i < smooth.size(); ++i) {
    best = std::min(best, smooth[i]);
    if (smooth[i] <= best + bound) good = i + 1;
  }
  end.lost = good < losses.size();
  end.last_good = static_cast<std::int64_t>(good);
  return end;
}

DeepestResult deepest(std::int64_t least, std::int64_t most, std::int64_t within,
                      const std::function<bool(std::int64_t)>& trains) {
  if (!trains(least)) return {0, least};
  if (most == least) return {least, {}};
  if (trains(most)) return {most, {}};
  std::int64_t good = least, bad = most;
  while (bad - good > within) {
    const std::int64_t middle = good + (bad - good) / 2;
    (trains(middle) ? good : bad) = middle;
  }
  return {good, bad};
}

}  // namespace normlab
