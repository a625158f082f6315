// The number type of every tensor. The library is compiled twice from the same sources: `float` for use, and `double`
// (NORMLAB_DOUBLE) so that finite differences can check gradients to 1e-6 and better.
#pragma once

#include <cstdint>

namespace normlab {

#ifdef NORMLAB_DOUBLE
using real = double;
#else
using real = float;
#endif

using std::int32_t;
using std::int64_t;
using std::uint32_t;
using std::uint64_t;

}  // namespace normlab
