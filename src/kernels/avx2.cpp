// The kernels compiled for AVX2 and FMA: the build gives this file the flags that allow these instructions.
#include "kernels/tables.h"

#ifdef NORMLAB_X86_KERNELS
#include <immintrin.h>

namespace normlab {
namespace avx2 {
namespace {

constexpr unsigned kVector = 8;
using Vector = __m256;

inline float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }

using Doubles = __m256d;
inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return _mm256_fmadd_pd(a, b, c); }
inline Doubles doubles_at(const float* from) { return _mm256_cvtps_pd(_mm_loadu_ps(from)); }

// 12 of the 16 registers of 8 floats hold the tile.
constexpr unsigned kTileRows = 6;
constexpr unsigned kTileColumns = 16;
constexpr unsigned kNarrowTileRows = kTileRows;

#include "kernels/x86.inl"
// after it, and after what stands above
#include "kernels/all.inl"

}  // namespace
}  // namespace avx2

constinit const KernelTable avx2_kernels = avx2::make_table("avx2", "AVX2 and FMA, tiles of 6 x 16", avx2_supported);

}  // namespace normlab

#endif
