// Every norm and every option of one, in value and gradient, against numbers worked out by hand from the formulas.
#include <cmath>

#include "core/text.h"
#include "unit/normed.h"

using namespace normlab;

namespace {

using Numbers = std::vector<double>;

// One row through the norm, fused where it has that and by definition, under every kernel table.
void check_row(Setup s, const std::vector<real>& x, const std::vector<real>& dy, const Numbers& y, const Numbers& dx,
               const Numbers& dgain, const Numbers& dbias, double tolerance = 1e-5) {
  Setup defined = s;
  defined.fused = false;
  for_each_path({s, defined}, [&](const Setup& path) {
    const Normed n = normed(path, 1, static_cast<int64_t>(x.size()), x, dy);
    check_near(n.y, y, tolerance);
    check_near(n.dx, dx, tolerance);
    check_near(n.dgain, dgain, tolerance);
    check_near(n.dbias, dbias, tolerance);
  });
}

}  // namespace

TEST_CASE("LayerNorm without bias has none to learn, and its gain may be kept as what it lies above 1") {
  // (1, 2, 3, 4): mean 2.5, variance 1.25; dx = r (g dy - mean(g dy) - h mean(g dy h)), here for dy = (1, 0, 0, 0).
  const Numbers h = {-1.34164, -0.44721, 0.44721, 1.34164}, dx = {0.26833, -0.35777, -0.08944, 0.17888};
  const auto times = [](Numbers v, double factor) {
    for (double& value : v) value *= factor;
    return v;
  };
  const std::vector<real> x = {1, 2, 3, 4}, dy = {1, 0, 0, 0};
  const Numbers dgain = {h[0], 0, 0, 0}, dbias = {1, 0, 0, 0};
  check_row({.norm = "layernorm"}, x, dy, h, dx, dgain, dbias);
  check_row({.norm = "layernorm", .options = {{"bias", 0}}}, x, dy, h, dx, dgain, {});
  check_row({.norm = "layernorm", .options = {{"unit_offset", 1}}}, x, dy, h, dx, dgain, dbias);
  check_row({.norm = "layernorm", .options = {{"unit_offset", 1}, {"bias", 0}}, .gain = real(0.5)}, x, dy,
            times(h, 1.5), times(dx, 1.5), dgain, {});
}

TEST_CASE("RMSNorm's eps stands inside the root, outside, or bounds the root from below; its gain may lie off 1") {
  // (3, 4, 0, 0): the root of the mean square s is 2.5.
  const std::vector<real> x = {3, 4, 0, 0}, dy = {1, 0, 0, 0};
  const auto at = [](double position) {
    return Setup{.norm = "rmsnorm", .eps = 0.5, .options = {{"eps_position", position}}};
  };
  // r = 1 / sqrt(6.75); dx = r (dy - h mean(dy h))
  check_row(at(0), x, dy, {1.154701, 1.539601, 0, 0}, {0.256600, -0.171067, 0, 0}, {1.154701, 0, 0, 0}, {});
  // dx = dy / (s + eps) - x sum(dy x) / (4 s (s + eps)^2)
  check_row(at(1), x, dy, {1, 4.0 / 3, 0, 0}, {1.0 / 3 - 0.1, -0.4 / 3, 0, 0}, {1, 0, 0, 0}, {});
  check_row(at(2), x, dy, {1.2, 1.6, 0, 0}, {0.256, -0.192, 0, 0}, {1.2, 0, 0, 0}, {});
  Setup below = at(2);
  below.eps = 5;  // s lies below: a constant divisor
  check_row(below, x, dy, {0.6, 0.8, 0, 0}, {0.2, 0, 0, 0}, {0.6, 0, 0, 0}, {});
  Setup offset = at(1);
  offset.options["unit_offset"] = 1;
  check_row(offset, x, dy, {1, 4.0 / 3, 0, 0}, {1.0 / 3 - 0.1, -0.4 / 3, 0, 0}, {1, 0, 0, 0}, {});
  offset.gain = real(0.5);
  check_row(offset, x, dy, {1.5, 2, 0, 0}, {0.35, -0.2, 0, 0}, {1, 0, 0, 0}, {});
  // A row of zeros: nothing to norm, the gradient divided by eps.
  for (const double position : {1.0, 2.0})
    check_row(at(position), {0, 0, 0, 0}, dy, {0, 0, 0, 0}, {2, 0, 0, 0}, {0, 0, 0, 0}, {});
}

TEST_CASE("partial RMSNorm looks at the first channels and norms all") {
  // Two of (3, 4, 12, 0): s = sqrt(12.5); dx = dy / s - (the first two) x sum(dy x) / (2 s^3), sum = 15.
  const std::vector<real> x = {3, 4, 12, 0}, dy = {1, 0, 1, 0};
  const Numbers y = {0.848528, 1.131371, 3.394113, 0}, dx = {-0.226274, -0.678823, 0.282843, 0},
                dgain = {0.848528, 0, 3.394113, 0};
  check_row({.norm = "prmsnorm", .eps = 0, .options = {{"share", 0.5}}}, x, dy, y, dx, dgain, {});
  // 1.2 channels are two; 0.4 are one, 3.
  check_row({.norm = "prmsnorm", .eps = 0, .options = {{"share", 0.3}}}, x, dy, y, dx, dgain, {});
  check_row({.norm = "prmsnorm", .eps = 7, .options = {{"share", 0.1}}}, x, {0, 0, 0, 0}, {0.75, 1, 3, 0}, {0, 0, 0, 0},
            {0, 0, 0, 0}, {});
}

TEST_CASE("compressed RMSNorm counts the channel that is left out") {
  // (1, 2, 2) stands for (1, 2, 2, -5): (9 + 25) / 4 = 8.5, with eps 7.5 the root s of 16.
  // dx_i = dy_i / s - sum(dy x) (x_i + 5) / (4 s^3)
  check_row({.norm = "crmsnorm", .eps = 7.5}, {1, 2, 2}, {1, 0, 0}, {0.25, 0.5, 0.5},
            {0.2265625, -0.02734375, -0.02734375}, {0.25, 0, 0}, {});
  check_row({.norm = "crmsnorm", .eps = 0}, {1, 2, 2}, {0, 0, 0}, {0.342997, 0.685994, 0.685994}, {0, 0, 0}, {0, 0, 0},
            {});
}

TEST_CASE("ScaleNorm gives every row one learned length, at first the root of the width") {
  // |(3, 4, 0, 0)| = 5; dx = g (dy - u sum(dy u)) / 5 with u = x / 5, dg = sum(dy u)
  const std::vector<real> x = {3, 4, 0, 0}, dy = {1, 0, 0, 0};
  check_row({.norm = "scalenorm"}, x, dy, {1.2, 1.6, 0, 0}, {0.256, -0.192, 0, 0}, {0.6}, {});
  check_row({.norm = "scalenorm", .gain = real(10)}, x, dy, {6, 8, 0, 0}, {1.28, -0.96, 0, 0}, {0.6}, {});
  check_row({.norm = "scalenorm", .affine = false}, x, dy, {1.2, 1.6, 0, 0}, {0.256, -0.192, 0, 0}, {}, {});
  // Shorter than eps: divided by eps.
  check_row({.norm = "scalenorm", .eps = 50, .gain = real(10)}, x, dy, {0.6, 0.8, 0, 0}, {0.2, 0, 0, 0}, {0.06}, {});
}

TEST_CASE("L2 norm gives rows of length 1 times the gains") {
  const std::vector<real> x = {3, 4, 0, 0}, dy = {1, 0, 0, 0};
  check_row({.norm = "l2norm", .eps = 1e-12}, x, dy, {0.6, 0.8, 0, 0}, {0.128, -0.096, 0, 0}, {0.6, 0, 0, 0}, {});
  check_row({.norm = "l2norm", .eps = 1e-12, .gain = real(2)}, x, dy, {1.2, 1.6, 0, 0}, {0.256, -0.192, 0, 0},
            {0.6, 0, 0, 0}, {});
  check_row({.norm = "l2norm", .eps = 50}, x, dy, {0.06, 0.08, 0, 0}, {0.02, 0, 0, 0}, {0.06, 0, 0, 0}, {});
}

TEST_CASE("norms that take size out leave a row of length 1 where they say so, and near sqrt(C) elsewhere") {
  const std::vector<real> x = {3, -1, 2, 0.5F, -4, 1, 0, 2.5F, -2, 1, 5, -3, 2, -1.5F, 0.25F, 1};
  for (const NormDef* norm : all_norms()) {
    if (!norm->scale_invariant || norm->reach != Reach::token) continue;
    double square = 0;
    for (const double y : normed({std::string(norm->name)}, 1, 16, x).y) square += y * y;
    INFO(norm->name);
    if (norm->unit_length)
      CHECK(square == Approx(1).epsilon(1e-5));
    else
      CHECK((square > 8 && square < 40));
  }
}

TEST_CASE("GroupNorm over time takes a group's channels at all positions together") {
  // Two positions of four channels in two groups: {1, 2, 3, 4} and {10, 20, 30, 40}.
  for_each_path({{.norm = "groupnorm_time", .options = {{"groups", 2}}}}, [](const Setup& s) {
    const Normed n = normed(s, 2, 4, {1, 2, 10, 20, 3, 4, 30, 40}, {1, 0, 0, 0, 0, 0, 0, 0});
    check_near(n.y, {-1.34164, -0.44721, -1.34164, -0.44721, 0.44721, 1.34164, 0.44721, 1.34164}, 1e-5);
    check_near(n.dx, {0.26833, -0.35777, 0, 0, -0.08944, 0.17888, 0, 0}, 1e-5);
    check_near(n.dgain, {-1.34164, 0, 0, 0}, 1e-5);
    check_near(n.dbias, {1, 0, 0, 0}, 0);
  });
}

TEST_CASE("GroupNorm over time with a group per channel is InstanceNorm") {
  for_each_path({{.norm = "groupnorm_time", .options = {{"groups", 6}}}}, [](const Setup& s) {
    const std::vector<real> x = normal_row(5 * 6, 1, 2).values(), dy = normal_row(5 * 6, 2).values();
    const Normed n = normed(s, 5, 6, x, dy), wanted = normed({.norm = "instancenorm"}, 5, 6, x, dy);
    check_near(n.y, wanted.y, 1e-6);
    check_near(n.dx, wanted.dx, 1e-6);
  });
}

TEST_CASE("AdaNorm weighs each normed value by itself, and the gradient does not see the weight") {
  // h = -1.34164, -0.44721, 0.44721, 1.34164; C (1 - k h) h = 2 h - 0.2 h^2, h^2 = 1.8 or 0.2. The gradient is
  // LayerNorm's, 0.26833, -0.35777, -0.08944, 0.17888, times C (1 - k h) = 2.268328, or with all of it C (1 - 2 k h).
  const std::vector<real> x = {1, 2, 3, 4}, dy = {1, 0, 0, 0};
  const Numbers y = {-3.04328, -0.93443, 0.85443, 2.32328};
  check_row({.norm = "adanorm", .options = {{"scale", 2}}}, x, dy, y, {0.60866, -0.81154, -0.20288, 0.40576}, {}, {},
            3e-5);
  check_row({.norm = "adanorm", .options = {{"scale", 2}, {"detach", 0}}}, x, dy, y,
            {0.68066, -0.90754, -0.22688, 0.45375}, {}, {}, 3e-5);
  check_row({.norm = "adanorm", .options = {{"slope", 0}}}, x, dy, {-1.34164, -0.44721, 0.44721, 1.34164},
            {0.26833, -0.35777, -0.08944, 0.17888}, {}, {});
}

TEST_CASE("DyT bends each value by tanh of alpha times it") {
  // alpha = 0.5: tanh(1) = 0.761594, tanh(0.5) = 0.462117; dx = g alpha (1 - tanh^2) dy, dalpha = sum(dy g (1 - tanh^2)
  // x)
  const Setup s = {.norm = "dyt", .gain = real(3), .bias = real(0.5)};
  check_row(s, {2, -2, 0, 1}, {1, 0, 0, 1}, {2.784783, -1.784783, 0.5, 1.886352}, {0.629961, 0, 0, 1.179672},
            {0.761594, 0, 0, 0.462117}, {1, 0, 0, 1});
  Setup with_alpha = s;
  with_alpha.numbers["alpha"] = real(0.25);  // 0.5, -0.5, 0, 0.25
  const Normed n = normed(with_alpha, 1, 4, {2, -2, 0, 1}, {1, 0, 0, 0});
  check_near(n.y, {1.886352, -0.886352, 0.5, 1.234756}, 1e-5);
  CHECK(n.dnumbers.at("alpha") == Approx(3 * 0.786448 * 2).epsilon(1e-5));
  with_alpha.numbers.clear(), with_alpha.options["alpha"] = 0.25;
  check_near(normed(with_alpha, 1, 4, {2, -2, 0, 1}).y, n.y, 0);
}

TEST_CASE("Derf bends each value by erf of alpha times it plus a shift") {
  // alpha = 0.5, shift = 0.25: erf(1) = 0.842701, erf(0) = 0, erf(0.25) = 0.276326; erf'(u) = 2 / sqrt(pi) exp(-u^2):
  // 0.415107 and 1.128379.
  Setup s = {.norm = "derf", .gain = real(1), .numbers = {{"alpha", real(0.5)}, {"shift", real(0.25)}}};
  const std::vector<real> x = {1.5, -0.5, 0}, dy = {1, 1, 0};
  check_row(s, x, dy, {0.842701, 0, 0.276326}, {0.207554, 0.564190, 0}, {0.842701, 0, 0}, {1, 1, 0});
  const Normed n = normed(s, 1, 3, x, dy);
  CHECK(n.dnumbers.at("alpha") == Approx(0.415107 * 1.5 - 1.128379 * 0.5).epsilon(1e-4));
  CHECK(n.dnumbers.at("shift") == Approx(0.415107 + 1.128379).epsilon(1e-5));
  s.numbers.clear();  // alpha starts at 0.5, the shift at 0: erf(0.75), erf(-0.25), erf(0)
  check_near(normed(s, 1, 3, x).y, {0.711156, -0.276326, 0}, 1e-5);
}

TEST_CASE("every norm without gain and bias gives what it gives with those it starts with, and has none to learn") {
  for (const NormDef* def : all_norms()) {
    for (const bool fused : {true, false}) {
      CAPTURE(def->name, fused);
      const std::vector<real> x = normal_row(6 * 12, 3).values(), dy = normal_row(6 * 12, 4).values();
      Setup s = {.norm = std::string(def->name), .fused = fused, .eps = def->default_eps};
      const Normed with = normed(s, 6, 12, x, dy);
      s.affine = false;
      const Normed without = normed(s, 6, 12, x, dy);
      CHECK(without.params.count("norm.weight") + without.params.count("norm.bias") == 0);
      CHECK((with.params.count("norm.weight") > 0) == def->has_affine);
      check_near(without.y, with.y, 1e-6);
      check_near(without.dx, with.dx, 1e-6);
    }
  }
}

TEST_CASE("the words of eps_position stand in the order of what they do") {
  const auto setup = [](const std::string& word) {
    Setup s = {.norm = "rmsnorm", .eps = 0.5};
    const std::vector<OptionSpec>& options = find_norm("rmsnorm")->options;
    for (std::size_t i = 0; i < options[0].words.size(); ++i) {
      if (options[0].words[i] == word) s.options["eps_position"] = static_cast<double>(i);
    }
    return normed(s, 1, 4, {3, 4, 0, 0}).y[0];
  };
  CHECK(setup("inside") == Approx(1.154701));
  CHECK(setup("outside") == Approx(1));
  CHECK(setup("clamped") == Approx(1.2));
}
