// Rows through LayerNorm, RMSNorm and Adam. Numbers of the named cases were worked out by hand from the formulas.
#include "kernel_tables.h"

using namespace normlab;

namespace {

struct Norm {
  std::vector<real> y, stats;
};

Norm norm(const KernelTable& table, const std::vector<real>& x, double eps, bool center, const real* gain = nullptr,
          const real* bias = nullptr) {
  const Guarded row(x);
  Guarded y(row.size(), kNan), stats(3, kNan);
  table.norm_rows({1, row.size(), row.begin(), row.size(), gain, center, stats.begin()}, bias, eps, y.begin(),
                  row.size());
  CHECK((y.intact() && stats.intact()));
  return {y.values(), stats.values()};
}

std::vector<real> gradient(const KernelTable& table, const std::vector<real>& x, const std::vector<real>& dy,
                           double eps, bool center, std::vector<real>* dgain = nullptr,
                           std::vector<real>* dbias = nullptr) {
  Norm forward = norm(table, x, eps, center);
  const Guarded row(x), upstream(dy), ones(row.size(), 1);
  Guarded dx(row.size(), kNan), gains(row.size()), biases(row.size());
  table.norm_rows_backward({1, row.size(), row.begin(), row.size(), ones.begin(), center, forward.stats.data()},
                           upstream.begin(), row.size(), dx.begin(), row.size(), false, gains.begin(), biases.begin());
  CHECK((dx.intact() && gains.intact() && biases.intact()));
  if (dgain != nullptr) *dgain = gains.values();
  if (dbias != nullptr) *dbias = biases.values();
  return dx.values();
}

void check_close(const std::vector<real>& found, const std::vector<double>& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i, found[i], expected[i]);
    CHECK(std::abs(static_cast<double>(found[i]) - expected[i]) <= tolerance);
  }
}

// The formulas in long double, one line each.
struct Reference {
  std::vector<long double> h;  // (x - mean) r
  long double r = 0;

  Reference(const Guarded& x, long double eps, bool center) {
    long double mean = 0, squares = 0;
    const auto n = static_cast<long double>(x.size());
    for (real v : x.values()) mean += center ? static_cast<long double>(v) / n : 0;
    for (real v : x.values()) squares += (v - mean) * (v - mean) / n;
    r = 1 / std::sqrt(squares + eps);
    for (real v : x.values()) h.push_back((v - mean) * r);
  }
  std::vector<long double> backward(const Guarded& gain, const Guarded& dy, bool center) const {
    const auto n = static_cast<long double>(h.size());
    long double mean = 0, slope = 0;
    const auto g = [&](std::size_t i) {
      const auto at = static_cast<std::int64_t>(i);
      return static_cast<long double>(gain[at]) * static_cast<long double>(dy[at]);
    };
    for (std::size_t i = 0; i < h.size(); ++i) mean += center ? g(i) / n : 0, slope += g(i) * h[i] / n;
    std::vector<long double> dx;
    for (std::size_t i = 0; i < h.size(); ++i) dx.push_back(r * (g(i) - mean - h[i] * slope));
    return dx;
  }
};

}  // namespace

// 11 rows: a whole block and a part of one. The rows of x, y, dy and dx stand differently far apart.
TEST_CASE("rows and their gradients equal the formulas for every width from 1 to 33, near zero and far from it",
          "[kernels][norm]") {
  const std::int64_t rows = 11;
  for (const KernelTable* table : runnable_tables())
    for (std::int64_t n = 1; n <= 33; ++n)
      for (double mean : {0.0, 1e4})
        for (bool center : {true, false}) {
          CAPTURE(table->name, n, mean, center);
          const std::int64_t ldx = n, ldy = n + 1, lddy = n + 2, lddx = n + 3;
          const Guarded x = normal_row(rows * ldx, 1, mean), gain = normal_row(n, 2, 1), bias = normal_row(n, 3),
                        dy = normal_row(rows * lddy, 4);
          Guarded y(rows * ldy, kNan), stats(3 * rows), dx(rows * lddx, real(2)), dgain(n, real(3)), dbias(n, real(4));
          const NormRows all{rows, n, x.begin(), ldx, gain.begin(), center, stats.begin()};
          table->norm_rows(all, bias.begin(), 1e-5, y.begin(), ldy);
          table->norm_rows_backward(all, dy.begin(), lddy, dx.begin(), lddx, true, dgain.begin(), dbias.begin());
          std::vector<double> dgain_expected(static_cast<std::size_t>(n), 3), dbias_expected = dgain_expected;
          std::vector<double> dgain_size = dgain_expected, dbias_size = dgain_expected, dgain_blur(dgain_expected);
          std::fill(dbias_expected.begin(), dbias_expected.end(), 4);
          dbias_size = dbias_expected;
          std::fill(dgain_blur.begin(), dgain_blur.end(), 0);
          // In the float build sums in double are as good as exact: what remains is a handful of roundings of h, of the
          // products and of the last sum. In the double build each sum rounds n times, and the mean costs h `blur`.
          const double sums = sizeof(real) == 4 ? 0 : 3 * static_cast<double>(n);
          for (std::int64_t row = 0; row < rows; ++row) {
            const Guarded x_row(std::vector<real>(x.begin() + row * ldx, x.begin() + row * ldx + n));
            const Guarded dy_row(std::vector<real>(dy.begin() + row * lddy, dy.begin() + row * lddy + n));
            const Reference reference(x_row, 1e-5L, center);
            const auto dx_expected = reference.backward(gain, dy_row, center);
            const double r = static_cast<double>(reference.r);
            const double blur = roundings(sums) * (1 + mean * r);
            for (std::int64_t i = 0; i < n; ++i) {
              const auto at = static_cast<std::size_t>(i);
              const double h = static_cast<double>(reference.h[at]);
              const double size = std::abs(h * gain[i]) + std::abs(bias[i]);
              REQUIRE(std::abs(y[row * ldy + i] - (h * gain[i] + bias[i])) <=
                      roundings(8 + sums) * size + blur * std::abs(gain[i]));
              dgain_expected[at] += h * dy_row[i], dgain_size[at] += std::abs(h * dy_row[i]);
              dbias_expected[at] += dy_row[i], dbias_size[at] += std::abs(dy_row[i]);
              dgain_blur[at] += blur * std::abs(dy_row[i]);
              const double largest = 20 * r * (1 + h * h);  // gains and gradients stay below 4.5
              // 4 of the roundings are those of a chain
              REQUIRE(std::abs(dx[row * lddx + i] - (2 + static_cast<double>(dx_expected[at]))) <=
                      roundings(16 + sums) * (2 + largest) + blur * largest);
            }
          }
          // One rounding more for every row added.
          for (std::size_t i = 0; i < dgain_size.size(); ++i) {
            const auto at = static_cast<std::int64_t>(i);
            REQUIRE(std::abs(dgain[at] - dgain_expected[i]) <=
                    roundings(8 + rows + sums) * dgain_size[i] + dgain_blur[i]);
            REQUIRE(std::abs(dbias[at] - dbias_expected[i]) <= roundings(1 + rows) * dbias_size[i]);
          }
          for (std::int64_t row = 0; row + 1 < rows; ++row) {  // what stands between the rows is not touched
            CHECK(std::isnan(y[row * ldy + n]));
            CHECK(dx[row * lddx + n] == 2);
          }
          CHECK((y.intact() && stats.intact() && dx.intact() && dgain.intact() && dbias.intact()));
        }
}

TEST_CASE("norms may miss gain and bias, work in place, pass dx over dy, and leave dx out", "[kernels][norm]") {
  for (const KernelTable* table : runnable_tables()) {
    const Guarded x = normal_row(21, 5), ones(21, 1), zeros(21, 0), bias = normal_row(21, 6), dy = normal_row(21, 7);
    const auto plain = norm(*table, x.values(), 1e-5, true);
    CHECK(norm(*table, x.values(), 1e-5, true, ones.begin(), zeros.begin()).y == plain.y);
    CHECK(norm(*table, x.values(), 1e-5, true, ones.begin()).y == plain.y);
    CHECK(norm(*table, x.values(), 1e-5, true, nullptr, bias.begin()).y ==
          norm(*table, x.values(), 1e-5, true, ones.begin(), bias.begin()).y);
    Guarded in_place = x, stats(3), dx(21, kNan), over = dy, dgain(21), dbias(21), alone(21);
    table->norm_rows({1, 21, in_place.begin(), 21, nullptr, true, stats.begin()}, nullptr, 1e-5, in_place.begin(), 21);
    CHECK(in_place.values() == plain.y);
    const NormRows with_gain{1, 21, x.begin(), 21, ones.begin(), true, stats.begin()};
    const NormRows without{1, 21, x.begin(), 21, nullptr, true, stats.begin()};
    table->norm_rows_backward(with_gain, dy.begin(), 21, dx.begin(), 21, false, dgain.begin(), nullptr);
    table->norm_rows_backward(without, over.begin(), 21, over.begin(), 21, false, nullptr, dbias.begin());
    CHECK(over.values() == dx.values());
    CHECK(dgain[20] == Approx(plain.y[20] * dy[20]));
    CHECK(dbias.values() == dy.values());
    table->norm_rows_backward(with_gain, dy.begin(), 21, nullptr, 0, false, alone.begin(), nullptr);
    CHECK(alone.values() == dgain.values());
  }
}

TEST_CASE("a large mean costs no digit of the variance", "[kernels][norm]") {
  const std::vector<double> quarter{-1.34164, -0.44721, 0.44721, 1.34164};
  for (const KernelTable* table : runnable_tables()) {
    check_close(norm(*table, {10001, 10002, 10003, 10004}, 1e-5, true).y, quarter, 1e-5);
    check_close(norm(*table, {40000, 40001, 40002, 40003}, 1e-5, true).y, quarter, 1e-5);
    check_close(norm(*table, {real(2000.12488), real(2000.41333), real(1998.37646), real(2001.08521)}, 1e-5, true).y,
                {0.12491, 0.41336, -1.62350, 1.08523}, sizeof(real) == 4 ? 1e-4 : 1e-5);
    for (std::size_t d = 2; d <= 33; ++d) {  // 40000, 40001, ...: variance (d^2 - 1) / 12
      std::vector<real> x(d);
      for (std::size_t i = 0; i < d; ++i) x[i] = static_cast<real>(40000 + i);
      const double n = static_cast<double>(d);
      const double deviation = std::sqrt((n * n - 1) / 12 + 1e-5);
      std::vector<double> expected(d);
      for (std::size_t i = 0; i < d; ++i) expected[i] = (static_cast<double>(i) - (n - 1) / 2) / deviation;
      check_close(norm(*table, x, 1e-5, true).y, expected, 1e-6);
    }
  }
}

TEST_CASE("a constant row becomes the bias exactly, a row of zeros 0", "[kernels][norm]") {
  for (const KernelTable* table : runnable_tables())
    for (std::size_t d : {std::size_t(1), std::size_t(3), std::size_t(33), std::size_t(64), std::size_t(256)}) {
      CAPTURE(table->name, d);
      for (real value : {real(1234), real(0.1f), real(-7e30f)})
        CHECK(norm(*table, std::vector<real>(d, value), 1e-5, true).y == std::vector<real>(d, 0));
      CHECK(norm(*table, std::vector<real>(d, 0), 1e-6, false).y == std::vector<real>(d, 0));
      CHECK(norm(*table, std::vector<real>(d, 0), 0, false).y == std::vector<real>(d, 0));  // without eps as well
    }
}

TEST_CASE("squares and differences that overflow a float give no NaN and no silent zero", "[kernels][norm]") {
  const real most = real(3.4e38);
  for (const KernelTable* table : runnable_tables()) {
    CAPTURE(table->name);
    check_close(norm(*table, std::vector<real>(4, real(2e19)), 1e-6, false).y, {1, 1, 1, 1}, 1e-6);
    check_close(norm(*table, {real(1e30), real(-1e30), real(2e30), real(-2e30)}, 1e-5, true).y,
                {0.63246, -0.63246, 1.26491, -1.26491}, 1e-5);
    // mean -1.7e38, so x - mean reaches 5.1e38: 3 / sqrt(3) and -1 / sqrt(3)
    check_close(norm(*table, {most, -most, -most, -most}, 1e-5, true).y, {1.73205, -0.57735, -0.57735, -0.57735}, 1e-5);
    std::vector<real> dgain;
    for (real v : gradient(*table, {most, -most, -most, -most}, {1, 0, 0, 0}, 1e-5, true, &dgain))
      CHECK(std::isfinite(v));
    check_close(dgain, {1.73205, 0, 0, 0}, 1e-5);
  }
}

TEST_CASE("eps stands inside the root", "[kernels][norm]") {
  for (const KernelTable* table : runnable_tables()) {
    check_close(norm(*table, {real(0.001), real(-0.001)}, 1e-5, true).y, {0.30151, -0.30151}, 1e-5);
    const std::pair<double, double> cases[] = {
        {1e-5, 0.30151}, {1e-6, 0.70711}, {1.1920929e-7, 0.94524}, {1e-8, 0.99504}};
    for (const auto& [eps, expected] : cases)
      check_close(norm(*table, std::vector<real>(4, real(0.001)), eps, false).y, std::vector<double>(4, expected),
                  1e-5);
  }
}

TEST_CASE("the gradient of a constant row is finite and right", "[kernels][norm]") {
  for (const KernelTable* table : runnable_tables()) {
    std::vector<real> dgain, dbias;
    check_close(gradient(*table, {5, 5, 5, 5}, {1, 0, 0, 0}, 1e-5, true, &dgain, &dbias),
                {237.1708, -79.0569, -79.0569, -79.0569}, 1e-3);
    CHECK(dgain == std::vector<real>(4, 0));
    CHECK(dbias == std::vector<real>{1, 0, 0, 0});
  }
}

TEST_CASE("one feature gives the bias exactly, whatever the gain", "[kernels][norm]") {
  const real gain = real(1e10), bias = -1;
  for (const KernelTable* table : runnable_tables()) {
    CHECK(norm(*table, {-3}, 0.1, true, &gain, &bias).y == std::vector<real>{-1});
    std::vector<real> dgain;
    CHECK(gradient(*table, {-3}, {1}, 0.1, true, &dgain) == std::vector<real>{0});
    CHECK(dgain == std::vector<real>{0});
    // -3 / sqrt(9 + 1e-6); its gradient is eps / (9 + eps)^1.5 = 3.7e-8, of which rounding leaves the order of
    // magnitude
    check_close(norm(*table, {-3}, 1e-6, false).y, {-0.99999994}, 6e-8);
    check_close(gradient(*table, {-3}, {1}, 1e-6, false), {3.7037e-8}, 4e-8);
  }
}

TEST_CASE("the mean of the gradient is taken out once", "[kernels][norm]") {
  for (const KernelTable* table : runnable_tables()) {
    check_close(gradient(*table, {1, 2, 3, 4}, {1, 1, 0, 0}, 1e-5, true), {-0.08944, 0.26833, -0.26833, 0.08944}, 1e-5);
    check_close(gradient(*table, {1, 2, 3, 4}, {1, 1, 1, 1}, 1e-5, true), {0, 0, 0, 0}, 1e-6);
    check_close(gradient(*table, {1, 2, 3, 4}, {1, 0, 0, 0}, 1e-5, true), {0.26833, -0.35777, -0.08944, 0.17888}, 1e-5);
  }
}

TEST_CASE("NaN in a row stays NaN through a norm", "[kernels][norm]") {
  for (const KernelTable* table : runnable_tables()) CHECK(std::isnan(norm(*table, {1, kNan, 2}, 1e-5, true).y[0]));
}

TEST_CASE("adam follows its definition: moments, corrections, decay apart from the gradient, clipping first",
          "[kernels][adam]") {
  const AdamStep step{0.01, 0.9, 0.99, 1e-4, 0.271, 0.029701, 0.1, 0.5};  // corrections of update 3
  for (const KernelTable* table : runnable_tables())
    for (std::int64_t n : {1, 16, 37}) {
      CAPTURE(table->name, n);
      const Guarded gradient = normal_row(n, 8);
      Guarded value = normal_row(n, 9), m = normal_row(n, 10, 0, 0.1), v(n, real(0.02));
      const Guarded before = value, old_m = m;
      double norms[2] = {100, 200}, values = 100, changes = 200;
      table->adam(n, step, gradient.begin(), value.begin(), m.begin(), v.begin(), norms);
      for (std::int64_t i = 0; i < n; ++i) {
        const double g = gradient[i] * 0.5, new_m = 0.9 * old_m[i] + 0.1 * g, new_v = 0.99 * real(0.02) + 0.01 * g * g;
        const double expected =
            before[i] * (1 - 0.01 * 0.1) - 0.01 * (new_m / 0.271) / (std::sqrt(new_v / 0.029701) + 1e-4);
        CHECK(std::abs(m[i] - new_m) <= roundings(6) * (std::abs(old_m[i]) + std::abs(g)));
        CHECK(std::abs(v[i] - new_v) <= roundings(8) * new_v);
        CHECK(std::abs(value[i] - expected) <= roundings(16) * (std::abs(before[i]) + 0.1));
        values += static_cast<double>(value[i]) * value[i];
        changes += (static_cast<double>(value[i]) - before[i]) * (static_cast<double>(value[i]) - before[i]);
      }
      CHECK(norms[0] == Approx(values).epsilon(1e-13));
      CHECK(norms[1] == Approx(changes).epsilon(1e-13));
      CHECK((value.intact() && m.intact() && v.intact()));
    }
}

TEST_CASE("the first update of adam has the size of the learning rate", "[kernels][adam]") {
  for (const KernelTable* table : runnable_tables()) {
    real gradient = real(1e-3), value = 1, m = 0, v = 0;
    double norms[2] = {};
    table->adam(1, {0.1, 0.9, 0.999, 0, 0.1, 0.001, 0, 1}, &gradient, &value, &m, &v, norms);
    CHECK(value == Approx(0.9));
    CHECK(norms[1] == Approx(0.01));
  }
}
