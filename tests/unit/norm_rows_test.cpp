// Every norm in fp32, fused and by definition, under every kernel table, on rows that norms are known to fail on: far
// from zero, constant, huge, tiny, of one element. The numbers were worked out by hand from the formulas.
#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "unit/normed.h"

using namespace normlab;

namespace {

// LayerNorm and its relatives: each sees `v` as the elements it normalizes together.
const std::vector<Setup>& centered_norms() {
  static const std::vector<Setup> all = {{.norm = "layernorm"},
                                         {.norm = "layernorm", .fused = false},
                                         {.norm = "groupnorm", .options = {{"groups", 1}}},
                                         {.norm = "groupnorm_time", .options = {{"groups", 1}}},
                                         {.norm = "batchnorm"},
                                         {.norm = "instancenorm"}};
  return all;
}
const std::vector<Setup>& rms_norms() {
  static const std::vector<Setup> all = {
      {.norm = "rmsnorm"}, {.norm = "rmsnorm", .fused = false}, {.norm = "prmsnorm", .options = {{"share", 1}}}};
  return all;
}
bool looks_down(const Setup& s) { return s.norm == "batchnorm" || s.norm == "instancenorm"; }

// The numbers `v` laid along the direction in which the norm looks, three times side by side.
Normed on(const Setup& s, const std::vector<real>& v, const std::vector<real>& dy = {}) {
  const auto n = static_cast<int64_t>(v.size());
  constexpr int64_t kCopies = 3;
  const auto laid = [&](const std::vector<real>& line) {
    std::vector<real> out;
    if (line.empty()) return out;
    for (int64_t i = 0; i < n * kCopies; ++i)
      out.push_back(line[static_cast<std::size_t>(looks_down(s) ? i / kCopies : i % n)]);
    return out;
  };
  const Normed all =
      looks_down(s) ? normed(s, n, kCopies, laid(v), laid(dy)) : normed(s, kCopies, n, laid(v), laid(dy));
  Normed first;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t copy = 0; copy < kCopies; ++copy) {
      const auto at = static_cast<std::size_t>(looks_down(s) ? i * kCopies + copy : copy * n + i);
      if (copy == 0) first.y.push_back(all.y[at]), first.dx.push_back(all.dx[at]);
      CHECK((all.y[at] == first.y.back() || std::isnan(first.y.back())));
    }
  }
  first.dgain = all.dgain, first.dbias = all.dbias;
  return first;
}

Setup with_eps(Setup s, double eps) {
  s.eps = eps;
  return s;
}

const std::vector<double> kQuarter = {-1.34164, -0.44721, 0.44721, 1.34164};

}  // namespace

TEST_CASE("a large mean costs no digit under any norm that takes the mean out") {
  for_each_path(centered_norms(), [](const Setup& s) {
    check_near(on(s, {10001, 10002, 10003, 10004}).y, kQuarter, 1e-5);
    check_near(on(s, {40000, 40001, 40002, 40003}).y, kQuarter, 1e-5);
    check_near(on(s, {real(2000.12488), real(2000.41333), real(1998.37646), real(2001.08521)}).y,
               {0.12491, 0.41336, -1.62350, 1.08523}, 1e-4);
    for (int d = 2; d <= 33; ++d) {  // 40000, 40001, ...: variance (d^2 - 1) / 12
      std::vector<real> x;
      std::vector<double> wanted;
      for (int i = 0; i < d; ++i) {
        x.push_back(static_cast<real>(40000 + i));
        wanted.push_back((i - (d - 1) / 2.0) / std::sqrt((d * d - 1) / 12.0 + 1e-5));
      }
      check_near(on(s, x).y, wanted, 2e-6);
    }
  });
}

TEST_CASE("gradients do not see how far from zero a row lies") {
  for_each_path(centered_norms(), [](const Setup& s) {
    for (const real offset : {real(0), real(40000)}) {
      const std::vector<real> x = {offset + 1, offset + 2, offset + 3, offset + 4};
      check_near(on(s, x, {1, 1, 0, 0}).dx, {-0.08944, 0.26833, -0.26833, 0.08944}, 1e-5);
      check_near(on(s, x, {1, 1, 1, 1}).dx, {0, 0, 0, 0}, 1e-6);
      check_near(on(s, x, {1, 0, 0, 0}).dx, {0.26833, -0.35777, -0.08944, 0.17888}, 1e-5);
    }
  });
}

TEST_CASE("a constant row becomes the bias exactly under every norm, a row of zeros 0") {
  for_each_path(centered_norms(), [](Setup s) {
    for (const real bias : {real(0), real(-0.7)}) {
      s.bias = bias;
      for (const int n : {1, 3, 64, 256}) {
        if (n == 1 && s.norm == "batchnorm") continue;  // refused when the model is built
        for (const real value : {real(1234), real(0.1f), real(-7e30f), real(0)}) {
          const auto size = static_cast<std::size_t>(n);
          CAPTURE(n, value);
          CHECK(on(s, std::vector<real>(size, value)).y == std::vector<double>(size, static_cast<double>(bias)));
        }
      }
    }
  });
  for_each_path(rms_norms(), [](const Setup& s) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{64}})
      CHECK(on(s, std::vector<real>(n, 0)).y == std::vector<double>(n, 0));
  });
}

TEST_CASE("squares that overflow a float give no NaN and no silent zero, under any norm, in bf16 either") {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    // bfloat16 keeps 8 bits, of the numbers below and of the result: two roundings of 2^-9 each.
    const double tolerance = precision == Precision::fp32 ? 1e-5 : 0.006;
    CAPTURE(precision == Precision::bf16);
    for_each_path(centered_norms(), [&](Setup s) {
      s.precision = precision;
      check_near(on(s, {real(1e30), real(-1e30), real(2e30), real(-2e30)}).y, {0.63246, -0.63246, 1.26491, -1.26491},
                 tolerance);
      // The gradient of so large a row is as good as 0, and nothing else.
      check_near(on(s, {real(1e30), real(-1e30), real(2e30), real(-2e30)}, {1, 0, 0, 0}).dx, {0, 0, 0, 0}, 1e-29);
    });
    for_each_path(rms_norms(), [&](Setup s) {
      s.precision = precision;
      check_near(on(s, std::vector<real>(4, real(2e19))).y, {1, 1, 1, 1}, tolerance);
      check_near(on(s, std::vector<real>(8, real(300))).y, std::vector<double>(8, 1), tolerance);
      check_near(on(s, std::vector<real>(4, real(1e38))).y, {1, 1, 1, 1}, tolerance);
      check_near(on(s, std::vector<real>(4, real(2e19)), {1, 0, 0, 0}).dx, {0, 0, 0, 0}, 1e-18);
    });
  }
}

TEST_CASE("eps stands inside the root of every norm, in values and in gradients") {
  for_each_path(centered_norms(), [](const Setup& s) {
    check_near(on(s, {real(0.001), real(-0.001)}).y, {0.30151, -0.30151}, 1e-5);
    // r = 1 / sqrt(1.1e-5) = 301.511; dx = r (dy - mean(dy) - h mean(dy h)) with dy = (1, 0), h = +-0.30151:
    // r (1/2 - 0.0909091 / 2).
    check_near(on(s, {real(0.001), real(-0.001)}, {1, 0}).dx, {137.0506, -137.0506}, 1e-3);
    for (const auto& [eps, wanted] :
         {std::pair{1e-5, 0.30151}, {1e-6, 0.70711}, {1.1920929e-7, 0.94524}, {1e-8, 0.99504}})
      check_near(on(with_eps(s, eps), {real(0.001), real(-0.001)}).y, {wanted, -wanted}, 1e-5);
  });
  for_each_path(rms_norms(), [](const Setup& s) {
    for (const auto& [eps, wanted] :
         {std::pair{1e-5, 0.30151}, {1e-6, 0.70711}, {1.1920929e-7, 0.94524}, {1e-8, 0.99504}})
      check_near(on(with_eps(s, eps), std::vector<real>(4, real(0.001))).y, std::vector<double>(4, wanted), 1e-5);
  });
}

TEST_CASE("the gradient through a row without variance is finite and right under every norm") {
  for_each_path(centered_norms(), [](const Setup& s) {
    const Normed n = on(s, {5, 5, 5, 5}, {1, 0, 0, 0});
    check_near(n.dx, {237.1708, -79.0569, -79.0569, -79.0569}, 1e-3);
    for (const double g : n.dgain) CHECK(g == 0);
    double bias = 0;
    for (const double g : n.dbias) bias += g;
    CHECK(bias == 3);  // of three copies
  });
  for_each_path(rms_norms(), [](const Setup& s) {  // r = 1 / sqrt(eps)
    check_near(on(s, {0, 0, 0, 0}, {1, 0, 0, 0}).dx, {316.2278, 0, 0, 0}, 1e-3);
  });
}

TEST_CASE("one element becomes the bias exactly under every norm, whatever the gain, and has no gradient") {
  for_each_path(centered_norms(), [](Setup s) {
    s.gain = real(1e10), s.bias = -1, s.eps = 0.1;
    if (s.norm == "batchnorm") return;  // one position is refused when the model is built; below, one of three
    const Normed one = on(s, {-3}, {1});
    CHECK(one.y == std::vector<double>{-1});
    CHECK(one.dx == std::vector<double>{0});
    for (const double g : one.dgain) CHECK(g == 0);
    if (s.norm != "groupnorm") return;
    s.options["groups"] = 3;  // groups of one channel each
    CHECK(normed(s, 1, 3, {-3, 5, 7}, {1, 1, 1}).y == std::vector<double>{-1, -1, -1});
  });
  // Of three positions one takes part.
  for_each_path({{.norm = "batchnorm"}, {.norm = "instancenorm"}}, [](Setup s) {
    s.gain = real(1e10), s.bias = -1, s.targets = {-1, 0, -1};
    const Normed one = normed(s, 3, 1, {9, -3, 4}, {0, 1, 0});
    CHECK(one.y[1] == -1);
    for (const double g : one.dx) CHECK(std::isfinite(g));
  });
  for_each_path(rms_norms(), [](Setup s) {
    s.eps = 1e-6;
    // -3 / sqrt(9 + 1e-6); its gradient, eps / (9 + eps)^1.5 = 3.7e-8, is below one rounding of 1/3.
    check_near(on(s, {-3}, {1}).y, {-0.99999994}, 6e-8);
    check_near(on(s, {-3}, {1}).dx, {3.7037e-8}, 4e-8);
  });
}

TEST_CASE("a norm without eps gives 0 for a row of zeros, fused and by definition") {
  for_each_path(rms_norms(), [](const Setup& s) {
    CHECK(on(with_eps(s, 0), {0, 0, 0, 0}).y == std::vector<double>{0, 0, 0, 0});
  });
  for_each_path(centered_norms(), [](const Setup& s) {
    CHECK(on(with_eps(s, 0), {5, 5, 5, 5}).y == std::vector<double>{0, 0, 0, 0});
  });
}

TEST_CASE("sums over a thousand positions stay exact under bf16, for gains and biases of every norm") {
  // A bfloat16 running sum of ones stalls at 256. Rows of 1 and -1 keep mean 0 and variance 1 in every direction.
  std::vector<Setup> all = centered_norms();
  all.insert(all.end(), rms_norms().begin(), rms_norms().end());
  for_each_path(all, [](Setup s) {
    s.precision = Precision::bf16, s.eps = 0;
    std::vector<real> x;
    for (int r = 0; r < 1000; ++r) {
      const real sign = looks_down(s) && r % 2 == 1 ? real(-1) : real(1);
      x.insert(x.end(), {sign, -sign});
    }
    const Normed ones = normed(s, 1000, 2, x, std::vector<real>(2000, 1));
    if (!ones.dbias.empty()) CHECK(ones.dbias == std::vector<double>{1000, 1000});
    // Cotangent = x: every position gives the gain 1.
    CHECK(normed(s, 1000, 2, x, x).dgain == std::vector<double>{1000, 1000});
  });
}

TEST_CASE("every registered norm gives finite numbers and gradients on zero, constant, shifted and large rows") {
  std::vector<Setup> all;
  for (const NormDef* def : all_norms()) {
    for (const bool fused : {true, false}) all.push_back({std::string(def->name), fused, def->default_eps});
  }
  for_each_path(all, [](const Setup& s) {
    for (const auto& [scale, offset] : {std::pair{0.0, 0.0}, {0.0, 5.0}, {1.0, 1e4}, {1e15, 0.0}, {1e-15, 0.0}}) {
      CAPTURE(scale, offset);
      std::vector<real> x, dy;
      const Guarded draws = normal_row(6 * 12, 3), upstream = normal_row(6 * 12, 4);
      for (std::int64_t i = 0; i < draws.size(); ++i) {
        x.push_back(static_cast<real>(scale * static_cast<double>(draws[i]) + offset));
        dy.push_back(upstream[i]);
      }
      const Normed n = normed(s, 6, 12, x, dy);
      for (const auto* part : {&n.y, &n.dx, &n.dgain, &n.dbias}) {
        CHECK(std::all_of(part->begin(), part->end(), [](double v) { return std::isfinite(v); }));
      }
    }
  });
}
