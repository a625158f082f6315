// Products of bfloat16 without instructions for them. A product of two bfloat16 numbers has 16 significant bits, so
// multiply_add rounds once, when it adds: what is left is to treat small numbers as the instructions do.

void pack_bf16(int64_t k, int64_t n, const real* b, int64_t ldb, real* packed) {
  pack(k, n, b, ldb, packed);
  round_bf16(packed_size(k, n), packed);
}

void pack_transposed_bf16(int64_t k, int64_t n, const real* b, int64_t ldb, real* packed) {
  pack_transposed(k, n, b, ldb, packed);
  round_bf16(packed_size(k, n), packed);
}

#ifdef NORMLAB_X86_INSTRUCTIONS

void gemm_bf16(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* packed, real* c, int64_t ldc,
               const real* bias, bool accumulate, real* scratch) {
  const FlushSmallNumbers flush;
  gemm(m, n, k, a, lda, packed, c, ldc, bias, accumulate, scratch);
}

void gemm_transposed_bf16(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* b, int64_t ldb,
                          real* c, int64_t ldc, bool accumulate) {
  const FlushSmallNumbers flush;
  gemm_transposed(m, n, k, a, lda, b, ldb, c, ldc, accumulate);
}

#else

#ifdef NORMLAB_DOUBLE

inline real flushed(real x) { return x; }
inline real multiply_add_bf16(real a, real b, real c) { return multiply_add(a, b, c); }

#else

// Zero with the sign of x where x is below the smallest normal number.
inline float flushed(float x) { return x < 0x1p-126f && x > -0x1p-126f ? 0 * x : x; }

// The product is exact in double. Rounding the sum to double and then to float is the same as rounding it once: c has
// 24 bits and a b 16, so a sum that does not fit into the 53 of a double is c with something small beside it, never
// near the middle between two floats. Where rounding to 24 bits gives less than 2^-126, the result is 0.
inline float multiply_add_bf16(float a, float b, float c) {
  const double sum = static_cast<double>(flushed(a)) * static_cast<double>(flushed(b)) + static_cast<double>(c);
  constexpr double kSmallest = 0x1p-126 - 0x1p-151;
  return sum < kSmallest && sum > -kSmallest ? static_cast<float>(0 * sum) : static_cast<float>(sum);
}

#endif

// c (+)= sum over i of a[i * a_step] b[i * b_step], the chain of every other table.
inline real chain_bf16(int64_t k, const real* a, int64_t a_step, const real* b, int64_t b_step) {
  real total = 0;
  for (int64_t i = 0; i < k; ++i) total = multiply_add_bf16(a[i * a_step], b[i * b_step], total);
  return total;
}

inline real sum_bf16(real a, real b) { return flushed(flushed(a) + flushed(b)); }

void gemm_bf16(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* packed, real* c, int64_t ldc,
               const real* bias, bool accumulate, real* /*scratch*/) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const real* panel = packed + j / kTileColumns * kTileColumns * k + j % kTileColumns;
      real value = chain_bf16(k, a + i * lda, 1, panel, kTileColumns);
      if (bias != nullptr) value = sum_bf16(value, bias[j]);
      c[i * ldc + j] = accumulate ? sum_bf16(c[i * ldc + j], value) : value;
    }
}

void gemm_transposed_bf16(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* b, int64_t ldb,
                          real* c, int64_t ldc, bool accumulate) {
  for (int64_t strip = 0; strip < k; strip += kStrip)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const real value =
            chain_bf16(smaller(kStrip, k - strip), a + strip * lda + i, lda, b + strip * ldb + j, ldb);
        real& to = c[i * ldc + j];
        to = accumulate || strip > 0 ? sum_bf16(to, value) : value;
      }
}

#endif
