// The kernels compiled for AVX-512: the build gives this file the flags that allow these instructions.
#include "kernels/tables.h"

#ifdef NORMLAB_X86_KERNELS
#include <immintrin.h>

namespace normlab {
namespace avx512 {
namespace {

constexpr unsigned kVector = 16;
using Vector = __m512;

inline float multiply_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double multiply_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }

using Doubles = __m512d;
inline Doubles multiply_add(Doubles a, Doubles b, Doubles c) { return _mm512_fmadd_pd(a, b, c); }
// All of it: the form without a mask is taken for a read of something unset.
inline Doubles doubles_at(const float* from) { return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(from)); }

// 28 of the 32 registers of 16 floats hold the tile.
constexpr unsigned kTileRows = 14;
constexpr unsigned kTileColumns = 32;
constexpr unsigned kNarrowTileRows = 16;  // of tiles 16 wide

#include "kernels/x86.inl"
// after it, and after what stands above
#include "kernels/all.inl"

}  // namespace
}  // namespace avx512

constinit const KernelTable avx512_kernels =
    avx512::make_table("avx512", "AVX-512 (F, VL, DQ, BW), tiles of 14 x 32", avx512_supported);

}  // namespace normlab

#endif
