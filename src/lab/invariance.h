// What a norm is deaf to and what it listens to, measured on random numbers: invariances, leaks, and which values of a
// batch (N sequences, L positions, C channels) take part in norming one of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/norm.h"

namespace normlab {

// Differences are the largest |change of the output| over the output's root mean square; 0 is perfect.
struct InvarianceRow {
  std::string norm;
  double shift = 0;       // of N(x + 3)
  double scale = 0;       // of N(2.5 x)
  double order = 0;       // of N(P x) to P N(x), P a permutation of the channels
  double evaluation = 0;  // of evaluation against training: running statistics, freshly trained on this batch
  // Share of x that the best gain and bias per channel, put behind the norm, fail to give back (root mean square).
  double unrestored = 0;
  bool batch = false;   // one sequence's output depends on another sequence
  bool future = false;  // a position's output depends on a later position
  // Row-major (n, l, c): 2 = the value that was changed, 1 = an output that changed with it, 0 = one that did not.
  std::vector<int> reach;
};

inline constexpr int64_t kInvarianceBatch = 2, kInvarianceTime = 6, kInvarianceWidth = 16;

// With the norm's own eps and options, gain 1 and bias 0.
InvarianceRow measure_invariance(const NormDef& norm);

extern const char kInvarianceHeader[];
std::string invariance_row(const InvarianceRow& row);  // one line of the CSV

}  // namespace normlab
