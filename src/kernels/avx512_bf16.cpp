// Products of bfloat16 by the instructions for them. VDPBF16PS adds the product of the odd elements of a pair first and
// that of the even ones second, each with one rounding (Intel SDM; measured on AMD Zen 5 also). A pair holds k in the
// odd place and k + 1 in the even one: so the chain of additions is that of every other table.
#include "kernels/tables.h"

#ifdef NORMLAB_BF16_KERNELS
#include <immintrin.h>

namespace normlab {
namespace avx512_bf16 {
namespace {

#include "kernels/x86.inl"

constexpr unsigned kTileRows = 14;
constexpr int64_t kTileColumns = 32;
constexpr int64_t kStrip = 64;  // of gemm_transposed, as in the other tables

using Pair = uint32_t;

constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
constexpr int64_t pairs(int64_t k) { return (k + 1) / 2; }

inline Pair high(float x) { return __builtin_bit_cast(Pair, x) & 0xffff0000u; }
inline Pair pair_of(float k, float k_plus_1) { return high(k) | high(k_plus_1) >> 16; }
constexpr Pair kNegativeZero = 0x8000u;  // the partner of a last a without one: adding -0 changes nothing, not even -0

// To the nearest, ties to even; NaN becomes a quiet NaN.
inline float rounded(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  const uint32_t nearest = bits + 0x7fffu + ((bits >> 16) & 1u), quiet = bits | 0x00400000u;
  return __builtin_bit_cast(float, ((bits & 0x7fffffffu) > 0x7f800000u ? quiet : nearest) & 0xffff0000u);
}

// Panels [n / 32][pairs][32], the last one filled up with zeros, in units of floats.
int64_t packed_size(int64_t k, int64_t n) { return (n + kTileColumns - 1) / kTileColumns * kTileColumns * pairs(k); }

// Two rows of up to 32 numbers as pairs; second = null: none.
template <bool Round>
inline void pack_rows(int64_t columns, const float* first, const float* second, Pair* to) {
  const auto value = [](float x) { return Round ? rounded(x) : x; };
  if (columns == kTileColumns && second != nullptr) {
#pragma omp simd
    for (int64_t j = 0; j < kTileColumns; ++j) to[j] = pair_of(value(first[j]), value(second[j]));
    return;
  }
  for (int64_t j = 0; j < kTileColumns; ++j)
    to[j] = j < columns ? pair_of(value(first[j]), second != nullptr ? value(second[j]) : 0) : 0;
}

template <bool Round>
inline void pack_panel(int64_t k, int64_t columns, const float* b, int64_t ldb, Pair* to) {
  for (int64_t i = 0; i < k; i += 2, b += 2 * ldb, to += kTileColumns)
    pack_rows<Round>(columns, b, i + 1 < k ? b + ldb : nullptr, to);
}

void pack(int64_t k, int64_t n, const float* b, int64_t ldb, float* packed) {
  Pair* to = reinterpret_cast<Pair*>(packed);
  for (int64_t first = 0; first < n; first += kTileColumns, to += pairs(k) * kTileColumns)
    pack_panel<true>(k, smaller(kTileColumns, n - first), b + first, ldb, to);
}

void pack_transposed(int64_t k, int64_t n, const float* b, int64_t ldb, float* packed) {
  Pair* to = reinterpret_cast<Pair*>(packed);
  for (int64_t first = 0; first < n; first += kTileColumns) {
    const int64_t columns = smaller(kTileColumns, n - first);
    for (int64_t strip = 0; strip < k; strip += kStrip) {
      const int64_t rows = smaller(kStrip, k - strip);
      float turned[kStrip * kTileColumns] = {};
      const float* from = b + first * ldb + strip;
      const int64_t whole_columns = columns - columns % 4, whole_rows = rows - rows % 4;
      for (int64_t j = 0; j < whole_columns; j += 4)
        for (int64_t i = 0; i < whole_rows; i += 4)
          transpose_4x4(from + j * ldb + i, ldb, turned + i * kTileColumns + j, kTileColumns);
      for (int64_t j = 0; j < columns; ++j)
        for (int64_t i = j < whole_columns ? whole_rows : 0; i < rows; ++i)
          turned[i * kTileColumns + j] = from[j * ldb + i];
      pack_panel<true>(rows, columns, turned, kTileColumns, to + strip / 2 * kTileColumns);
    }
    to += pairs(k) * kTileColumns;
  }
}

// a[m][k] as pairs along k.
int64_t scratch(int64_t m, int64_t k) { return m * pairs(k); }

void pack_a(int64_t m, int64_t k, const float* a, int64_t lda, Pair* to) {
  for (int64_t r = 0; r < m; ++r, a += lda, to += pairs(k)) {
#pragma omp simd
    for (int64_t i = 0; i < k / 2; ++i) to[i] = pair_of(a[2 * i], a[2 * i + 1]);
    if (k % 2 == 1) to[k / 2] = high(a[k - 1]) | kNegativeZero;
  }
}

struct Product {
  int64_t pairs, lda, ldc;
  bool accumulate;
};

// c (+)= a b + bias for Rows rows and the first `columns` of a panel. ByColumns: a lies [pair][row].
template <unsigned Rows, bool ByColumns>
[[gnu::noinline]] void tile(const Product& p, const Pair* a, const Pair* b, int64_t columns, float* c,
                            const float* bias) {
  if (p.accumulate)
    for (unsigned r = 0; r < Rows; ++r) __builtin_prefetch(c + r * p.ldc, 1);
  __m512 total[Rows][2] = {};
  for (int64_t i = 0; i < p.pairs; ++i) {
    const __m512i left = _mm512_loadu_si512(b + i * kTileColumns),
                  right = _mm512_loadu_si512(b + i * kTileColumns + 16);
#pragma GCC unroll 16
    for (unsigned r = 0; r < Rows; ++r) {
      const __m512i now = _mm512_set1_epi32(static_cast<int>(ByColumns ? a[i * p.lda + r] : a[r * p.lda + i]));
      total[r][0] = _mm512_dpbf16_ps(total[r][0], reinterpret_cast<__m512bh>(now), reinterpret_cast<__m512bh>(left));
      total[r][1] = _mm512_dpbf16_ps(total[r][1], reinterpret_cast<__m512bh>(now), reinterpret_cast<__m512bh>(right));
    }
  }
  const __mmask16 masks[2] = {static_cast<__mmask16>(columns >= 16 ? 0xffffu : (1u << columns) - 1),
                              static_cast<__mmask16>(columns >= 32   ? 0xffffu
                                                     : columns <= 16 ? 0u
                                                                     : (1u << (columns - 16)) - 1)};
#pragma GCC unroll 16
  for (unsigned r = 0; r < Rows; ++r) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < 2; ++v) {
      float* to = c + r * p.ldc + v * 16;
      __m512 value = total[r][v];
      if (bias != nullptr) value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(masks[v], bias + v * 16));
      if (p.accumulate) value = _mm512_add_ps(_mm512_maskz_loadu_ps(masks[v], to), value);
      _mm512_mask_storeu_ps(to, masks[v], value);
    }
  }
}

template <unsigned Rows, bool ByColumns>
inline void tile_of(int64_t rows, const Product& p, const Pair* a, const Pair* b, int64_t columns, float* c,
                    const float* bias) {
  if constexpr (Rows > 1)
    if (rows < Rows) return tile_of<Rows - 1, ByColumns>(rows, p, a, b, columns, c, bias);
  tile<Rows, ByColumns>(p, a, b, columns, c, bias);
}

// body(first row, rows) for blocks that differ by one row at most.
template <class Body>
inline void for_row_blocks(int64_t m, const Body& body) {
  const int64_t blocks = (m + int64_t{kTileRows} - 1) / int64_t{kTileRows};
  for (int64_t i = 0, row = 0; i < blocks; ++i) {
    const int64_t rows = m / blocks + (i < m % blocks ? 1 : 0);
    body(row, rows);
    row += rows;
  }
}

void gemm(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* packed, float* c, int64_t ldc,
          const float* bias, bool accumulate, float* scratch) {
  const FlushSmallNumbers flush;
  Pair* pairs_of_a = reinterpret_cast<Pair*>(scratch);
  pack_a(m, k, a, lda, pairs_of_a);
  const Product p{pairs(k), pairs(k), ldc, accumulate};
  for_row_blocks(m, [&](int64_t row, int64_t rows) {
    for (int64_t first = 0; first < n; first += kTileColumns)
      tile_of<kTileRows, false>(
          rows, p, pairs_of_a + row * p.lda, reinterpret_cast<const Pair*>(packed) + first * p.pairs,
          smaller(kTileColumns, n - first), c + row * ldc + first, bias != nullptr ? bias + first : nullptr);
  });
}

// Strips of 64 k, in blocks of rows whose pairs stay in the first-level cache.
void gemm_transposed(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
                     float* c, int64_t ldc, bool accumulate) {
  const FlushSmallNumbers flush;
  constexpr int64_t kRows = 5 * int64_t{kTileRows};
  for (int64_t strip = 0; strip < k; strip += kStrip) {
    const int64_t depth = smaller(kStrip, k - strip);
    const Product p{pairs(depth), kRows, ldc, accumulate || strip > 0};
    for (int64_t top = 0; top < m; top += kRows) {
      const int64_t height = smaller(kRows, m - top);
      Pair a_pairs[kStrip / 2 * kRows], b_pairs[kStrip / 2 * kTileColumns];
      for (int64_t i = 0; i < depth; i += 2) {
        const float* first = a + (strip + i) * lda + top;
        Pair* to = a_pairs + i / 2 * kRows;
        if (i + 1 < depth) {
#pragma omp simd
          for (int64_t r = 0; r < height; ++r) to[r] = pair_of(first[r], first[lda + r]);
        } else {
          for (int64_t r = 0; r < height; ++r) to[r] = high(first[r]) | kNegativeZero;
        }
      }
      for (int64_t first = 0; first < n; first += kTileColumns) {
        const int64_t columns = smaller(kTileColumns, n - first);
        pack_panel<false>(depth, columns, b + strip * ldb + first, ldb, b_pairs);
        for_row_blocks(height, [&](int64_t row, int64_t rows) {
          tile_of<kTileRows, true>(rows, p, a_pairs + row, b_pairs, columns, c + (top + row) * ldc + first, nullptr);
        });
      }
    }
  }
}

}  // namespace
}  // namespace avx512_bf16

constinit const Products avx512_bf16_products = {avx512_bf16::packed_size,     avx512_bf16::pack,
                                                 avx512_bf16::pack_transposed, avx512_bf16::gemm,
                                                 avx512_bf16::scratch,         avx512_bf16::gemm_transposed};

}  // namespace normlab

#endif
