// The functions applied element by element, against long double libm over all exponents of the number type.
#include <functional>

#include "kernel_tables.h"

using namespace normlab;

namespace {

using Big = long double;

// Both signs of 40 numbers for every power of two, denormal ones included, and a fine grid where the functions bend.
const std::vector<real>& arguments() {
  static const std::vector<real> all = [] {
    std::vector<real> result{0, -real(0)};
    const Rng rng(1, stream_id("arguments"));
    const int digits = std::numeric_limits<real>::digits;
    for (int e = std::numeric_limits<real>::min_exponent - digits; e <= std::numeric_limits<real>::max_exponent - 1;
         ++e)
      for (int i = 0; i < 40; ++i) {
        const double part = i == 0 ? 1 : 1 + rng.uniform(static_cast<std::uint64_t>((e + 5000) * 40 + i));
        const real x = std::ldexp(static_cast<real>(part), e);
        if (!std::isfinite(x)) continue;
        result.push_back(x);
        result.push_back(-x);
      }
    for (int i = -110000; i <= 110000; ++i) result.push_back(static_cast<real>(i) / 1000);
    return result;
  }();
  return all;
}

Big half_erfc(Big x) { return std::erfc(x) / 2; }
Big normal(Big x) { return half_erfc(-x / std::sqrt(Big(2))); }
Big sigmoid(Big x) { return 1 / (1 + std::exp(-x)); }
const Big kPi = std::acos(Big(-1));
Big two_u(Big x) { return 2 * std::sqrt(2 / kPi) * (x + Big(0.044715L) * x * x * x); }

struct Case {
  Unary f;
  const char* name;
  std::function<Big(Big)> value, slope;
  // Allowed error of the value: relative + growing * x^2 relative, of the slope: absolute; for float.
  double relative, growing, absolute;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {Unary::relu, "relu", [](Big x) { return x > 0 ? x : 0; }, [](Big x) { return Big(x > 0); }, 0, 0, 0},
      {Unary::exp, "exp", [](Big x) { return std::exp(x); }, nullptr, 1e-7, 0, 0},
      {Unary::tanh, "tanh", [](Big x) { return std::tanh(x); }, [](Big x) { return 1 / std::cosh(x) / std::cosh(x); },
       1.5e-7, 0, 1.2e-7},
      {Unary::erf, "erf", [](Big x) { return std::erf(x); },
       [](Big x) { return 2 / std::sqrt(kPi) * std::exp(-x * x); }, 1.8e-7, 0, 1.6e-7},
      {Unary::sigmoid, "sigmoid", sigmoid, [](Big x) { return sigmoid(x) * sigmoid(-x); }, 1.9e-7, 0, 6e-8},
      {Unary::silu, "silu", [](Big x) { return x * sigmoid(x); },
       [](Big x) { return sigmoid(x) * (1 + x * sigmoid(-x)); }, 2.5e-7, 0, 2e-7},
      {Unary::gelu, "gelu", [](Big x) { return x * normal(x); },
       [](Big x) { return normal(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi); }, 5e-7, 1.2e-7, 2.6e-7},
      {Unary::gelu_tanh, "gelu_tanh", [](Big x) { return x * sigmoid(two_u(x)); },
       [](Big x) {
         const Big s = sigmoid(two_u(x)), other = sigmoid(-two_u(x));
         return s + x * s * other * 2 * std::sqrt(2 / kPi) * (1 + 3 * Big(0.044715L) * x * x);
       },
       2.5e-7, 2.5e-7, 2.2e-7},
      {Unary::square, "square", [](Big x) { return x * x; }, nullptr, 6e-8, 0, 0},
  };
  return all;
}

// Doubles come from libm: a few roundings.
double in_precision(double float_error) {
  return sizeof(real) == 4 ? float_error : float_error * 1e-8;
}  // 1e-15, about 5 roundings

std::vector<real> mapped(const KernelTable& table, Unary f, const std::vector<real>& x) {
  Guarded in(x), out(in.size(), kNan);
  Guarded slope(in.size(), kNan), again(in.size(), kNan);
  table.unary(f, in.size(), in.begin(), out.begin(), nullptr);
  table.unary(f, in.size(), in.begin(), again.begin(), slope.begin());
  CHECK(out.intact());
  table.unary(f, in.size(), in.begin(), in.begin(), nullptr);
  const auto same = [](real a, real b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  CHECK(std::equal(in.begin(), in.begin() + in.size(), out.begin(), same));
  CHECK(std::equal(again.begin(), again.begin() + again.size(), out.begin(), same));
  return out.values();
}

std::vector<real> slopes(const KernelTable& table, Unary f, const std::vector<real>& x) {
  const Guarded in(x);
  Guarded value(in.size(), kNan), out(in.size(), kNan);
  table.unary(f, in.size(), in.begin(), value.begin(), out.begin());
  CHECK((value.intact() && out.intact()));
  return out.values();
}

}  // namespace

TEST_CASE("every function is accurate in relative terms over all exponents", "[kernels][math]") {
  const auto& x = arguments();
  for (const KernelTable* table : runnable_tables())
    for (const Case& c : cases()) {
      const auto found = mapped(*table, c.f, x);
      double worst = 0;
      real where = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Big expected = c.value(x[i]);
        if (std::abs(expected) > std::numeric_limits<real>::max()) {
          REQUIRE(std::abs(found[i]) >= real(0.9999999) * std::numeric_limits<real>::max());
          continue;
        }
        const double tiny = 2.0 * std::numeric_limits<real>::min();  // smaller numbers have fewer digits
        const Big size = std::abs(expected);
        const Big allowed =
            size * in_precision(c.relative + c.growing * std::min(static_cast<double>(x[i]) * x[i], 1e3)) + tiny;
        const double ratio = static_cast<double>(std::abs(found[i] - expected) / allowed);
        if (!(ratio <= worst)) worst = ratio, where = x[i];
      }
      CAPTURE(table->name, c.name, where);
      CHECK(worst <= 1);
    }
}

TEST_CASE("every derivative is the derivative of the function, also far out", "[kernels][math]") {
  const auto& x = arguments();
  for (const KernelTable* table : runnable_tables())
    for (const Case& c : cases()) {
      if (!c.slope) continue;
      const auto found = slopes(*table, c.f, x);
      double worst = 0;
      real where = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Big far = std::clamp(static_cast<Big>(x[i]), Big(-1e4), Big(1e4));  // the references overflow beyond
        const double error = static_cast<double>(std::abs(found[i] - c.slope(far)));
        if (!(error <= worst)) worst = error, where = x[i];
      }
      CAPTURE(table->name, c.name, where);
      CHECK(worst <= in_precision(c.absolute));
    }
}

TEST_CASE("functions at infinity, at NaN and far out", "[kernels][math]") {
  const std::vector<real> far{kInf, -kInf, real(1e30), real(-1e30)};
  struct Row {
    Unary f;
    std::vector<real> value, slope;
  };
  const Row rows[] = {
      {Unary::relu, {kInf, 0, real(1e30), 0}, {1, 0, 1, 0}},
      {Unary::gelu, {kInf, 0, real(1e30), 0}, {1, 0, 1, 0}},
      {Unary::gelu_tanh, {kInf, 0, real(1e30), 0}, {1, 0, 1, 0}},
      {Unary::silu, {kInf, 0, real(1e30), 0}, {1, 0, 1, 0}},
      {Unary::tanh, {1, -1, 1, -1}, {0, 0, 0, 0}},
      {Unary::erf, {1, -1, 1, -1}, {0, 0, 0, 0}},
      {Unary::exp, {kInf, 0, kInf, 0}, {kInf, 0, kInf, 0}},
      {Unary::sigmoid, {1, 0, 1, 0}, {0, 0, 0, 0}},
  };
  for (const KernelTable* table : runnable_tables())
    for (const Row& row : rows) {
      CAPTURE(table->name, static_cast<int>(row.f));
      CHECK(mapped(*table, row.f, far) == row.value);
      CHECK(slopes(*table, row.f, far) == row.slope);
      CHECK(std::isnan(mapped(*table, row.f, {kNan})[0]));
    }
}

TEST_CASE("published values of gelu and silu", "[kernels][math]") {
  for (const KernelTable* table : runnable_tables()) {
    // 0.8413447460685429 is Phi(1), 0.7310585786300049 the logistic function of 1
    CHECK(mapped(*table, Unary::gelu, {1})[0] == Approx(0.8413447460685429));
    CHECK(mapped(*table, Unary::gelu, {-1})[0] == Approx(-0.15865525393145707));
    CHECK(mapped(*table, Unary::silu, {1})[0] == Approx(0.7310585786300049));
    CHECK(mapped(*table, Unary::gelu_tanh, {1})[0] == Approx(0.8411919906082768));
  }
}

TEST_CASE("values and slopes of rows of any length", "[kernels][math]") {
  for (const KernelTable* table : runnable_tables())
    for (std::int64_t n = 1; n <= 35; ++n) {
      const Guarded x(n, 3);
      Guarded y(n, kNan), slope(n, kNan);
      table->unary(Unary::square, n, x.begin(), y.begin(), slope.begin());
      CHECK(y.values() == std::vector<real>(static_cast<std::size_t>(n), 9));
      CHECK(slope.values() == std::vector<real>(static_cast<std::size_t>(n), 6));
      CHECK((y.intact() && slope.intact()));
    }
}
