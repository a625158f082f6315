#include "core/rng.h"

#include <cmath>
#include <numbers>

namespace normlab {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(second >> 32) ^ c[1] ^ key[0], static_cast<std::uint32_t>(second),
         static_cast<std::uint32_t>(first >> 32) ^ c[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

std::uint32_t stream_id(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

Rng::Rng(std::uint64_t seed, std::uint32_t stream, std::uint64_t step)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
      stream_(stream),
      step_(static_cast<std::uint32_t>(step)) {}

std::array<std::uint32_t, 4> Rng::block(std::uint64_t index) const {
  return philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream_, step_}, key_);
}

std::uint64_t Rng::bits(std::uint64_t index) const {
  const auto b = block(index);
  return (std::uint64_t{b[1]} << 32) | b[0];
}

double Rng::uniform(std::uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }

std::uint64_t Rng::below(std::uint64_t index, std::uint64_t bound) const {
  // The high half of a 64x64 bit product; its bias is below bound / 2^64.
  const std::uint64_t x = bits(index);
  const std::uint64_t x_low = x & 0xffffffffu, x_high = x >> 32;
  const std::uint64_t b_low = bound & 0xffffffffu, b_high = bound >> 32;
  const std::uint64_t middle = x_high * b_low + ((x_low * b_low) >> 32);
  return x_high * b_high + (middle >> 32) + ((x_low * b_high + (middle & 0xffffffffu)) >> 32);
}

double Rng::normal(std::uint64_t index) const {
  const auto b = block(index);
  const double u = (static_cast<double>((std::uint64_t{b[1]} << 32 | b[0]) >> 11) + 0.5) * 0x1p-53;  // (0, 1)
  const double v = static_cast<double>((std::uint64_t{b[3]} << 32 | b[2]) >> 11) * 0x1p-53;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

}  // namespace normlab
