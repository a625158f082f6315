// Counter-based random numbers: a value is a pure function of (seed, stream, step, index), so it never depends on the
// order of calls, on the number of threads or on what else drew numbers. Philox4x32-10 (Salmon et al. 2011, "Parallel
// random numbers: as easy as 1, 2, 3").
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace normlab {

// One Philox4x32-10 block.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

// A 32-bit name for a stream of numbers ("init/head.weight", "batch", "dropout/12"): FNV-1a of the text.
std::uint32_t stream_id(std::string_view name);

class Rng {
 public:
  // `step` below 2^32 numbers the use in time (the update); 0 where time plays no part.
  Rng(std::uint64_t seed, std::uint32_t stream, std::uint64_t step = 0);

  std::uint64_t bits(std::uint64_t index) const;
  double uniform(std::uint64_t index) const;                            // [0, 1), 53 bits
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;  // [0, bound), bound > 0
  double normal(std::uint64_t index) const;                             // mean 0, variance 1 (Box-Muller)

 private:
  std::array<std::uint32_t, 4> block(std::uint64_t index) const;

  std::array<std::uint32_t, 2> key_;
  std::uint32_t stream_;
  std::uint32_t step_;
};

}  // namespace normlab
