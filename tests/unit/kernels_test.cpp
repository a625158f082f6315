#include "kernels/kernels.h"

#include <cstdlib>

#include "kernel_tables.h"
#include "normlab/error.h"

using namespace normlab;

namespace {

std::string refusal(std::string_view name) {
  try {
    choose_kernels(name);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

// Rows of `columns` numbers `stride` apart with NaN between them. Whole numbers from -4 to 4, so that every order of
// summing gives the same exact result, or normal numbers.
Guarded matrix(std::int64_t rows, std::int64_t columns, std::int64_t stride, std::uint64_t seed, bool whole) {
  const Rng rng(seed, stream_id("kernel test"));
  Guarded result((rows - 1) * stride + columns, kNan);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto index = static_cast<std::uint64_t>(r * columns + c);
      result[r * stride + c] =
          static_cast<real>(whole ? static_cast<double>(rng.below(index, 9)) - 4 : rng.normal(index));
    }
  return result;
}

struct Shape {
  std::int64_t m, n, k;
};

// The product by either kernel against three loops in double. `a` is [m][k], or [k][m] if transposed. Returns what went
// wrong.
std::string product_fault(const KernelTable& table, Shape s, bool transposed, bool accumulate, bool with_bias,
                          bool whole) {
  const std::int64_t lda = (transposed ? s.m : s.k) + 3, ldb = s.n + 5, ldc = s.n + 2;
  const Guarded a = transposed ? matrix(s.k, s.m, lda, 1, whole) : matrix(s.m, s.k, lda, 1, whole);
  const Guarded b = matrix(s.k, s.n, ldb, 2, whole), bias = matrix(1, s.n, s.n, 3, whole),
                before = matrix(s.m, s.n, ldc, 4, whole);
  Guarded c = accumulate ? before : Guarded((s.m - 1) * ldc + s.n, kNan);
  if (transposed) {
    table.products.gemm_transposed(s.m, s.n, s.k, a.begin(), lda, b.begin(), ldb, c.begin(), ldc, accumulate);
  } else {
    Guarded packed(table.products.packed_size(s.k, s.n));
    table.products.pack(s.k, s.n, b.begin(), ldb, packed.begin());
    if (!packed.intact()) return "packed beyond the end";
    table.products.gemm(s.m, s.n, s.k, a.begin(), lda, packed.begin(), c.begin(), ldc,
                        with_bias ? bias.begin() : nullptr, accumulate, nullptr);
  }
  if (!c.intact()) return "wrote around c";
  for (std::int64_t i = 0; i < s.m; ++i) {
    for (std::int64_t j = 0; j < s.n; ++j) {
      double expected = (accumulate ? before[i * ldc + j] : 0) + (with_bias ? bias[j] : 0);
      double size = std::abs(accumulate ? before[i * ldc + j] : 0) + std::abs(with_bias ? bias[j] : 0);
      for (std::int64_t l = 0; l < s.k; ++l) {
        const double term =
            static_cast<double>(transposed ? a[l * lda + i] : a[i * lda + l]) * static_cast<double>(b[l * ldb + j]);
        expected += term;
        size += std::abs(term);
      }
      const double error = std::abs(static_cast<double>(c[i * ldc + j]) - expected);
      const double allowed = whole ? 0 : roundings(static_cast<double>(s.k) + 3) * size;
      if (!(error <= allowed)) return "element " + std::to_string(i) + ", " + std::to_string(j) + " is wrong";
    }
    for (std::int64_t j = s.n; j < ldc && i + 1 < s.m; ++j)
      if (!std::isnan(c[i * ldc + j])) return "wrote between rows";
  }
  return "";
}

void check_products(bool transposed) {
  for (const KernelTable* table : runnable_tables()) {
    for (std::int64_t m : {1, 2, 4, 5, 6, 7, 13, 14, 15, 29})
      for (std::int64_t n : {1, 3, 4, 5, 8, 9, 15, 16, 17, 31, 32, 33, 48})
        for (std::int64_t k : {1, 2, 17, 128, 129, 257}) {
          CAPTURE(table->name, m, n, k);
          const bool accumulate = (m + n + k) % 2 == 0, with_bias = !transposed && (m + n) % 3 == 0;
          REQUIRE(product_fault(*table, {m, n, k}, transposed, accumulate, with_bias, true) == "");
        }
    for (bool accumulate : {false, true}) {
      CAPTURE(table->name, accumulate);
      CHECK(product_fault(*table, {31, 47, 300}, transposed, accumulate, !transposed, false) == "");
    }
  }
}

}  // namespace

TEST_CASE("kernels are listed best first and the portable ones always run", "[kernels]") {
  const auto tables = all_kernels();
  CHECK(std::string(tables.back()->name) == "portable");
  CHECK(tables.back()->supported());
  if (tables.size() == 3) {
    CHECK(std::string(tables[0]->name) == "avx512");
    CHECK(std::string(tables[1]->name) == "avx2");
  }
}

TEST_CASE("the environment variable NORMLAB_KERNELS chooses the kernels and a wrong name is refused", "[kernels]") {
  const char* set = std::getenv("NORMLAB_KERNELS");
  const std::string original = set != nullptr ? set : "";
  for (const KernelTable* table : runnable_tables()) {
    setenv("NORMLAB_KERNELS", table->name, 1);
    choose_kernels("");
    CHECK(&kernels() == table);
  }
  setenv("NORMLAB_KERNELS", "portabel", 1);
  CHECK(refusal("").find(
            "environment variable NORMLAB_KERNELS: unknown kernels 'portabel' (did you mean 'portable'?)") == 0);
  unsetenv("NORMLAB_KERNELS");
  choose_kernels("");
  CHECK(&kernels() == runnable_tables().front());
  choose_kernels("portable");
  CHECK(std::string(kernels().name) == "portable");
  CHECK(refusal("sse9").find("kernels: unknown kernels 'sse9'; expected one of: ") == 0);
  CHECK(std::string(kernels().name) == "portable");  // a refusal changes nothing
  for (const KernelTable* table : all_kernels())
    if (!table->supported()) CHECK(refusal(table->name).find("this processor does not support") != std::string::npos);
  if (!original.empty()) setenv("NORMLAB_KERNELS", original.c_str(), 1);
  choose_kernels("");
}

TEST_CASE("gemm equals three loops at every tile edge and never reads an old c", "[kernels]") { check_products(false); }

TEST_CASE("gemm_transposed equals three loops at every tile edge and never reads past b", "[kernels]") {
  check_products(true);
}

TEST_CASE("pack and pack_transposed of a matrix and its transpose agree, with zeros in the last panel", "[kernels]") {
  for (const KernelTable* table : runnable_tables())
    for (std::int64_t n : {1, 7, 8, 31, 33})
      for (std::int64_t k : {1, 5, 130}) {
        CAPTURE(table->name, n, k);
        const Guarded b = matrix(k, n, n + 1, 5, true);
        Guarded turned(n * (k + 2), kNan);
        for (std::int64_t i = 0; i < k; ++i)
          for (std::int64_t j = 0; j < n; ++j) turned[j * (k + 2) + i] = b[i * (n + 1) + j];
        Guarded one(table->products.packed_size(k, n), kNan), other(table->products.packed_size(k, n), kNan);
        table->products.pack(k, n, b.begin(), n + 1, one.begin());
        table->products.pack_transposed(k, n, turned.begin(), k + 2, other.begin());
        CHECK(one.values() == other.values());
        CHECK((one.intact() && other.intact()));
        double of_panels = 0, of_matrix = 0;
        for (real x : one.values()) of_panels += x;
        for (std::int64_t i = 0; i < k; ++i)
          for (std::int64_t j = 0; j < n; ++j) of_matrix += b[i * (n + 1) + j];
        CHECK(of_panels == of_matrix);
      }
}

TEST_CASE("sum, dot and sum_squares are accurate to double and equal in every table", "[kernels]") {
  for (std::int64_t n : {1, 2, 15, 16, 17, 33, 100, 1000}) {
    const Guarded x = normal_row(n, 7, 1000), y = normal_row(n, 8);
    long double sum = 0, dot = 0, squares = 0, size = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const long double a = x[i], b = y[i];
      sum += a, dot += a * b, squares += a * a, size += std::abs(a * b);
    }
    const double bound = static_cast<double>(n) * std::numeric_limits<double>::epsilon();
    for (const KernelTable* table : runnable_tables()) {
      CAPTURE(table->name, n);
      CHECK(std::abs(table->sum(n, x.begin()) - static_cast<double>(sum)) <= bound * static_cast<double>(sum));
      CHECK(std::abs(table->dot(n, x.begin(), y.begin()) - static_cast<double>(dot)) <=
            bound * static_cast<double>(size));
      CHECK(std::abs(table->sum_squares(n, x.begin()) - static_cast<double>(squares)) <=
            bound * static_cast<double>(squares));
      // Products of two floats are exact in double, so fused or not makes no difference.
      CHECK(table->sum(n, x.begin()) == all_kernels().back()->sum(n, x.begin()));
      CHECK(table->dot(n, x.begin(), y.begin()) == all_kernels().back()->dot(n, x.begin(), y.begin()));
    }
  }
}

TEST_CASE("the sum of squares of large floats does not overflow", "[kernels]") {
  const Guarded x(40, real(3e38));
  for (const KernelTable* table : runnable_tables()) CHECK(table->sum_squares(40, x.begin()) == Approx(40 * 9e76));
}

TEST_CASE("elementwise kernels work in place, at any length, and write nothing else", "[kernels]") {
  for (const KernelTable* table : runnable_tables())
    for (std::int64_t n = 1; n <= 35; ++n) {
      CAPTURE(table->name, n);
      const Guarded x = matrix(1, n, n, 9, true), y = matrix(1, n, n, 10, true);
      Guarded fresh(n, kNan), in_place = y, added = y, scaled(n, kNan), product(n, kNan), more = x;
      table->axpby(n, 2, x.begin(), -3, y.begin(), fresh.begin());
      table->axpby(n, 2, x.begin(), -3, in_place.begin(), in_place.begin());
      table->scale(n, 5, x.begin(), added.begin(), true);
      table->scale(n, 5, x.begin(), scaled.begin(), false);
      table->multiply(n, x.begin(), y.begin(), product.begin(), false);
      table->multiply(n, x.begin(), y.begin(), more.begin(), true);
      for (std::int64_t i = 0; i < n; ++i) {
        REQUIRE(fresh[i] == 2 * x[i] - 3 * y[i]);
        REQUIRE(in_place[i] == fresh[i]);
        REQUIRE(added[i] == y[i] + 5 * x[i]);
        REQUIRE(scaled[i] == 5 * x[i]);
        REQUIRE(product[i] == x[i] * y[i]);
        REQUIRE(more[i] == x[i] + x[i] * y[i]);
      }
      CHECK((fresh.intact() && in_place.intact() && added.intact() && scaled.intact() && product.intact() &&
             more.intact()));
    }
}

TEST_CASE("column sums over rows that lie apart, of x and of products", "[kernels]") {
  for (const KernelTable* table : runnable_tables())
    for (std::int64_t columns : {1, 15, 16, 17, 40})
      for (std::int64_t rows : {1, 3, 70}) {
        CAPTURE(table->name, columns, rows);
        const Guarded x = matrix(rows, columns, columns + 3, 5, true), y = matrix(rows, columns, columns + 1, 6, true);
        Guarded sums(columns, kNan), products(columns, 100);
        table->column_sums(rows, columns, x.begin(), columns + 3, nullptr, 0, sums.begin(), false);
        table->column_sums(rows, columns, x.begin(), columns + 3, y.begin(), columns + 1, products.begin(), true);
        for (std::int64_t j = 0; j < columns; ++j) {
          real sum = 0, product = 100;
          for (std::int64_t r = 0; r < rows; ++r) {
            sum += x[r * (columns + 3) + j];
            product += x[r * (columns + 3) + j] * y[r * (columns + 1) + j];
          }
          REQUIRE(sums[j] == sum);
          REQUIRE(products[j] == product);
        }
        CHECK((sums.intact() && products.intact()));
      }
}

TEST_CASE("AVX2 and AVX-512 give the same bits", "[kernels]") {
  const auto tables = runnable_tables();
  NORMLAB_SKIP_UNLESS(tables.size() == 3, "needs a processor with AVX-512");
  const std::int64_t m = 37, n = 45, k = 301;
  const Guarded a = matrix(m, k, k, 12, false), b = matrix(k, n, n, 13, false), turned = matrix(k, m, m, 14, false);
  std::vector<std::vector<real>> results;
  for (const KernelTable* table : {tables[0], tables[1]}) {
    Guarded packed(table->products.packed_size(k, n)), c(m * n), d(m * n), y(k), dx(k), dgain(k), stats(3),
        v(k, real(0.5)), sums(n);
    table->products.pack(k, n, b.begin(), n, packed.begin());
    table->products.gemm(m, n, k, a.begin(), k, packed.begin(), c.begin(), n, b.begin(), false, nullptr);
    table->products.gemm_transposed(m, n, k, turned.begin(), m, b.begin(), n, d.begin(), n, false);
    const NormRows row{1, k, a.begin(), k, b.begin(), true, stats.begin()};
    table->norm_rows(row, nullptr, 1e-5, y.begin(), k);
    table->norm_rows_backward(row, turned.begin(), k, dx.begin(), k, false, dgain.begin(), nullptr);
    table->unary(Unary::gelu, m * n, c.begin(), c.begin(), nullptr);
    table->column_sums(k, n, b.begin(), n, nullptr, 0, sums.begin(), false);
    double norms[2] = {};
    table->adam(k, {1e-3, 0.9, 0.99, 1e-8, 0.1, 0.01, 0.1, 0.5}, b.begin(), y.begin(), dx.begin(), v.begin(), norms);
    std::vector<real> all{static_cast<real>(norms[0]), static_cast<real>(norms[1])};
    for (const Guarded* part : {&c, &d, &y, &dx, &dgain, &stats, &v, &sums})
      all.insert(all.end(), part->begin(), part->begin() + part->size());
    results.push_back(all);
  }
  CHECK(results[0] == results[1]);
}
