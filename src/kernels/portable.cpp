// The kernels for any processor, and the only ones of the double build. Products and sums are rounded one after the
// other.
#include "kernels/tables.h"

namespace normlab {
namespace portable {
namespace {

constexpr unsigned kVector = 16 / sizeof(real);
using Vector [[gnu::vector_size(16)]] = real;

[[maybe_unused]] inline float multiply_add(float a, float b, float c) { return a * b + c; }
[[maybe_unused]] inline double multiply_add(double a, double b, double c) { return a * b + c; }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return a * b + c; }

#ifdef NORMLAB_DOUBLE
using Doubles = Vector;
#else
using Doubles [[gnu::vector_size(16)]] = double;
inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return a * b + c; }
#endif
inline Doubles doubles_at(const real* from) {
  return Doubles{static_cast<double>(from[0]), static_cast<double>(from[1])};
}

// to[j][i] = from[i][j].
inline void transpose_4x4(const real* from, int64_t from_stride, real* to, int64_t to_stride) {
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 4; ++j) to[j * to_stride + i] = from[i * from_stride + j];
}

// 8 of the 16 registers of 4 floats that every x86-64 has (ARM: 32) hold the tile.
constexpr unsigned kTileRows = 4;
constexpr unsigned kTileColumns = 8;
constexpr unsigned kNarrowTileRows = kTileRows;

#include "kernels/all.inl"

}  // namespace
}  // namespace portable

constinit const KernelTable portable_kernels =
    portable::make_table("portable", "plain C++ for any processor, tiles of 4 x 8", portable_supported);

}  // namespace normlab
