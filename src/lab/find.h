// Stability as one number: how fast, and how deep, a configuration still trains.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace normlab {

// Where a run under a rate that rises step by step breaks off, after Chen & Wei 2026 (KEEL, arXiv:2601.19895), section 5.1. Losses are
// smoothed over 10 steps; the run is lost from the first step on which a loss is not finite, or from which the
// smoothed loss stays above its best so far by more than a quarter of the run's whole descent until the end.
struct RampEnd {
  bool trained = false;        // whether it ever came clearly (2 %) below the context-free entropy
  bool lost = false;           // false: it held out to the end
  std::int64_t last_good = 0;  // the last step before, from 1; 0 = none
};
RampEnd ramp_end(const std::vector<double>& losses, std::optional<double> context_free_entropy);

// The largest depth that trains, between `least` and `most`, to within `within` layers, by bisection: `trains` is asked
// for depths in the order they are needed. One that fails below one that trains is not looked for.
struct DeepestResult {
  std::int64_t trains = 0;                 // 0: not even `least`
  std::optional<std::int64_t> fails = {};  // the smallest depth seen to fail; none: `most` trains
};
DeepestResult deepest(std::int64_t least, std::int64_t most, std::int64_t within,
                      const std::function<bool(std::int64_t)>& trains);

}  // namespace normlab
