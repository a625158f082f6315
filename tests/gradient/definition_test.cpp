// What norms claim: the fused kernel equals the definition, invariances, and how far a norm looks.
#include <algorithm>
#include <cmath>

#include "gradient/small_decoder.h"
#include "lab/gradcheck.h"
#include "lab/gradcheck_recording.h"
#include "test.h"

namespace normlab {
namespace {

double largest(const std::vector<real>& x) {
  double most = 0;
  for (const real value : x) most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

// Largest difference relative to the largest of either.
double apart(const std::vector<real>& x, const std::vector<real>& y) {
  REQUIRE(x.size() == y.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(static_cast<double>(x[i] - y[i])));
  const double size = std::max(largest(x), largest(y));
  return most == 0 ? 0 : most / size;
}

TEST_CASE("A fused norm equals its definition in value and in every gradient") {
  std::size_t pairs = 0;
  for (const NormDef* def : all_norms()) {
    const std::vector<GradcheckCase> cases = norm_cases(*def);
    for (const GradcheckCase& defined : cases) {
      const auto fused = std::find_if(cases.begin(), cases.end(),
                                      [&](const GradcheckCase& c) { return c.name == defined.name + ", fused"; });
      if (fused == cases.end()) continue;
      ++pairs;
      Recording a(defined, false), b(*fused, false);
      // Two sums of n terms in another order differ by less than n 2^-53 of the sum of their sizes. An offset of 1e4 on
      // a spread of 1 makes that 1e4 times as much of the spread, in the value, and again in the gradient's division by
      // it.
      const bool offset = defined.name.find("offset") != std::string::npos;
      const double rounding = 36 * 0x1p-53 * (offset ? 1e4 : 1);
      INFO(fused->name);
      CHECK(apart(a.result(), b.result()) <= rounding);
      CHECK(apart(a.gradients(0, false), b.gradients(0, false)) <= 8 * rounding);
    }
  }
  REQUIRE(pairs >= 24);  // LayerNorm and RMSNorm have fused kernels
}

std::vector<real> normed(const NormDef& def, double factor, double offset) {
  GradcheckCase c{.section = "norm", .name = std::string(def.name), .sizes = {2, 6}};
  NormChoice choice = norm_choice(def, 2);
  choice.eps = 1e-12;  // the invariances hold up to eps
  c.record = [=](CaseInputs& in) {
    return apply_norm(in.graph, choice, "norm",
                      in.tensor("x", {2, 6, 8}, [=](double z) { return factor * (0.3 + 1.5 * z) + offset; }));
  };
  return Recording(c, false).result();
}

TEST_CASE("Norms are invariant to shift and scale exactly where they say so") {
  for (const NormDef* def : all_norms()) {
    INFO(def->name);
    const std::vector<real> plain = normed(*def, 1, 0);
    const double shifted = apart(plain, normed(*def, 1, 2)), scaled = apart(plain, normed(*def, 3, 0));
    CHECK((def->shift_invariant ? shifted < 1e-9 : shifted > 1e-3));
    CHECK((def->scale_invariant ? scaled < 1e-9 : scaled > 1e-3));
  }
}

// Which logits (B, T) move when the token at sequence 1, position 3 changes.
std::vector<bool> moved_positions(const ModelConfig& config, bool training) {
  SmallDecoder decoder(config, Plan::training, true);
  decoder.pass.training = training;
  const std::vector<real> before = decoder.logits();
  int32_t& token = decoder.tokens[static_cast<std::size_t>(config.context + 3)];
  token = (token + 1) % static_cast<int32_t>(config.vocabulary);
  const std::vector<real> after = decoder.logits();
  const auto v = static_cast<std::size_t>(config.vocabulary);
  std::vector<bool> moved;
  for (std::size_t p = 0; p < before.size() / v; ++p) {
    const auto at = static_cast<std::ptrdiff_t>(p * v);
    moved.push_back(
        !std::equal(before.begin() + at, before.begin() + at + static_cast<std::ptrdiff_t>(v), after.begin() + at));
  }
  return moved;
}

bool has_norms(const ModelConfig& config) {
  ParamStore store;
  Graph graph(store, {3, config.context});
  build_decoder(graph, config);
  for (int p = 0; p < store.count(); ++p) {
    if (store.spec(p).name.find("norm") != std::string::npos) return true;
  }
  return false;
}

void check_reach(const ModelConfig& config, bool training) {
  const std::vector<bool> moved = moved_positions(config, training);
  // Running statistics stand in for the batch at evaluation, so nothing leaks there.
  Reach reach = has_norms(config) ? config.norm.def->reach : Reach::token;
  if (reach == Reach::batch && !training) reach = Reach::token;
  const auto t = static_cast<std::size_t>(config.context);
  bool future = true, past = false, others = false;
  for (std::size_t p = 0; p < moved.size(); ++p) {
    if (p / t != 1)
      others = others || moved[p];
    else if (p % t < 3)
      past = past || moved[p];
    else
      future = future && moved[p];
  }
  INFO(config.placement->name << " x " << config.norm.def->name << (training ? ", training" : ", evaluation"));
  CHECK(future);  // the changed token itself and all that can attend to it
  CHECK(past == (reach != Reach::token));
  CHECK(others == (reach == Reach::batch));
}

TEST_CASE("Exactly the norms that look across positions let a token change the logits before it") {
  for (const Placement* placement : all_placements()) {
    for (const NormDef* norm : all_norms()) {
      for (const bool training : {true, false}) check_reach(small_model(*norm, *placement), training);
    }
  }
}

TEST_CASE("A QK norm lets no token change the logits before it") {
  for (const NormDef* norm : all_norms()) {
    if (norm->reach != Reach::token) continue;
    ModelConfig config = small_model(*find_norm("none"), *find_placement("none"));
    config.qk_norm = norm_choice(*norm, 2);
    check_reach(config, true);
  }
}

}  // namespace
}  // namespace normlab
