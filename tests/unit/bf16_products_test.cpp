// Products of bfloat16: every implementation gives the bits of the definition, one rounding per product added, in the
// order of k, numbers below 2^-126 being 0.
#include <bit>
#include <cmath>
#include <string>

#include "kernel_tables.h"

using namespace normlab;

namespace {

struct Named {
  std::string name;
  const Products* products;
};

std::vector<Named> implementations() {
  std::vector<Named> all;
  for (const KernelTable* table : runnable_tables()) all.push_back({table->name, &table->bf16_products});
  if (native_bf16_products() != nullptr)
    all.push_back({"native", native_bf16_products()});
  else
    WARN("SKIPPED, not a pass: this processor has no bfloat16 instructions");
  return all;
}

// bfloat16 numbers of either sign with exponents from `low` to `high`.
Guarded numbers(std::int64_t rows, std::int64_t columns, std::int64_t stride, std::uint64_t seed, int low, int high) {
  const Rng rng(seed, stream_id("bf16 test"));
  Guarded result((rows - 1) * stride + columns, kNan);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<std::uint64_t>(3 * (r * columns + j));
      const double mantissa = 1 + static_cast<double>(rng.below(at, 128)) / 128;
      const int exponent = low + static_cast<int>(rng.below(at + 1, static_cast<std::uint64_t>(high - low + 1)));
      result[r * stride + j] = static_cast<real>((rng.below(at + 2, 2) == 0 ? 1 : -1) * std::ldexp(mantissa, exponent));
    }
  return result;
}

real small_is_zero(real x) { return std::abs(x) < std::numeric_limits<real>::min() ? std::copysign(real(0), x) : x; }

// One step of the chain by its definition. fma of floats in double is exact but for one rounding to double, which never
// decides the rounding to float here (16 bits added to 24).
real step(real a, real b, real c) {
  const double sum =
      static_cast<double>(small_is_zero(a)) * static_cast<double>(small_is_zero(b)) + static_cast<double>(c);
  // Tininess is judged after rounding to 24 bits: with the exponent moved up, out of the denormal range.
  const auto rounded = static_cast<real>(std::ldexp(sum, 60));
  if (std::abs(rounded) < std::ldexp(real(1), -66)) return std::copysign(real(0), rounded);
  return static_cast<real>(sum);
}

std::uint32_t bits(real x) { return std::isnan(x) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(static_cast<float>(x)); }

struct Range {
  int low, high;
};

}  // namespace

TEST_CASE("products of bfloat16 have the bits of their definition in every implementation", "[kernels][bf16]") {
  const std::int64_t strip = 64;
  for (const Named& one : implementations())
    for (const Range range : {Range{-3, 3}, Range{-20, 20}, Range{-76, -50}, Range{-133, -40}})
      for (std::int64_t k : {1, 2, 7, 64, 131})
        for (std::int64_t n : {1, 15, 16, 33, 64}) {
          const std::int64_t m = 17;
          CAPTURE(one.name, range.low, range.high, k, n);
          const Guarded a = numbers(m, k, k + 3, 1, range.low, range.high);
          const Guarded a_turned = numbers(k, m, m + 3, 1, range.low, range.high);
          const Guarded b = numbers(k, n, n + 5, 2, range.low, range.high);
          Guarded b_turned((n - 1) * (k + 2) + k, kNan);
          for (std::int64_t i = 0; i < k; ++i)
            for (std::int64_t j = 0; j < n; ++j) b_turned[j * (k + 2) + i] = b[i * (n + 5) + j];
          const Products& p = *one.products;
          Guarded packed(p.packed_size(k, n), kNan), other(p.packed_size(k, n), kNan), scratch(p.scratch(m, k), kNan);
          Guarded c(m * n, kNan), d(m * n, kNan), e(m * n, kNan);
          p.pack(k, n, b.begin(), n + 5, packed.begin());
          p.pack_transposed(k, n, b_turned.begin(), k + 2, other.begin());
          p.gemm(m, n, k, a.begin(), k + 3, packed.begin(), c.begin(), n, nullptr, false, scratch.begin());
          p.gemm(m, n, k, a.begin(), k + 3, other.begin(), e.begin(), n, nullptr, false, scratch.begin());
          p.gemm_transposed(m, n, k, a_turned.begin(), m + 3, b.begin(), n + 5, d.begin(), n, false);
          CHECK((packed.intact() && other.intact() && scratch.intact() && c.intact() && d.intact() && e.intact()));
          for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
              real chain = 0, strips = 0, sum = 0;
              for (std::int64_t l = 0; l < k; ++l) {
                chain = step(a[i * (k + 3) + l], b[l * (n + 5) + j], chain);
                strips = step(a_turned[l * (m + 3) + i], b[l * (n + 5) + j], strips);
                if ((l + 1) % strip != 0 && l + 1 != k) continue;
                sum = l < strip ? strips : small_is_zero(sum + strips);
                strips = 0;
              }
              REQUIRE(bits(c[i * n + j]) == bits(chain));
              REQUIRE(bits(e[i * n + j]) == bits(chain));
              REQUIRE(bits(d[i * n + j]) == bits(sum));
            }
        }
}

TEST_CASE("packing rounds weights to the nearest bfloat16; bias, accumulation, infinities and NaN", "[kernels][bf16]") {
  for (const Named& one : implementations()) {
    CAPTURE(one.name);
    const Products& p = *one.products;
    // 257 lies between 256 and 258: ties to even gives 256. 2 * 256 + 1 * 1.5 + bias 0.25.
    const Guarded b(std::vector<real>{257, 1.5}), a(std::vector<real>{2, 1}), bias(std::vector<real>{real(0.25)});
    Guarded packed(p.packed_size(2, 1)), scratch(p.scratch(1, 2)), c(1, 1000);
    p.pack(2, 1, b.begin(), 1, packed.begin());
    p.gemm(1, 1, 2, a.begin(), 2, packed.begin(), c.begin(), 1, bias.begin(), true, scratch.begin());
    CHECK(c[0] == real(1513.75));
    p.gemm_transposed(1, 1, 2, a.begin(), 1, a.begin(), 1, c.begin(), 1, true);
    CHECK(c[0] == real(1518.75));
    for (const real special : {kInf, -kInf, kNan}) {
      const Guarded far(std::vector<real>{1, special});
      p.gemm(1, 1, 2, far.begin(), 2, packed.begin(), c.begin(), 1, nullptr, false, scratch.begin());
      CHECK(bits(c[0]) == bits(special));
    }
    CHECK(std::numeric_limits<real>::denorm_min() * 2 > 0);  // small numbers live again after the product
  }
}

TEST_CASE("a product without a partner leaves a negative zero as it is", "[kernels][bf16]") {
  for (const Named& one : implementations()) {
    CAPTURE(one.name);
    const Products& p = *one.products;
    // -2^-100 * 2^-100 is flushed to -0, and nothing is added to it.
    const Guarded a(std::vector<real>{-std::ldexp(real(1), -100)}), b(std::vector<real>{std::ldexp(real(1), -100)});
    Guarded packed(p.packed_size(1, 1)), scratch(p.scratch(1, 1)), c(1, 5);
    p.pack(1, 1, b.begin(), 1, packed.begin());
    p.gemm(1, 1, 1, a.begin(), 1, packed.begin(), c.begin(), 1, nullptr, false, scratch.begin());
    CHECK(bits(c[0]) == 0x80000000u);
  }
}
