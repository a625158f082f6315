// A drawing of which values of a batch take part in norming one of them: per norm one grid of positions by channels for
// each sequence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace normlab {

struct ReachGrid {
  std::string name;
  std::vector<int> cells;  // row-major (n, l, c): 2 = the value, 1 = takes part, 0 = does not
};

// All of the same size. Deterministic, for light and dark screens.
std::string reach_svg(const std::vector<ReachGrid>& norms, std::int64_t sequences, std::int64_t positions,
                      std::int64_t channels);

}  // namespace normlab
