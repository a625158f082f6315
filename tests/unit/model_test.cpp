// What the decoder computes, on models small enough to work by hand: placements, final norm, QK norms, positions,
// leaks.
#include "normlab/model.h"

#include <cmath>
#include <functional>

#include "../model_probe.h"
#include "../small_run.h"
#include "attention_to_first.h"
#include "core/rng.h"
#include "core/text.h"

using namespace normlab;

namespace {

const std::vector<double> kNormed = {-1.34164, -0.44721, 0.44721, 1.34164};  // LayerNorm of [1, 2, 3, 4]

// A model of width 4 whose one token is the stream [1, 2, 3, 4] times `scale`, whose branches give 0, and whose head
// shows the stream.
std::vector<double> stream_of(const std::vector<std::string>& sets, double scale = 1,
                              const std::string& norm = "layernorm") {
  std::vector<std::string> all = {"model.width=4", "model.heads=1", "model.context=1", "model.position=none",
                                  "model.norm=" + norm};
  all.insert(all.end(), sets.begin(), sets.end());
  ModelProbe probe(small_model(4, all), 1, 1);
  probe.clear("attention.out.weight");
  probe.clear("ffn.down.weight");
  probe.set("head.weight", {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  probe.set("embedding.token.weight", {scale, 2 * scale, 3 * scale, 4 * scale, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  return probe.logits({0});
}

// One sub-layer of a placement around a branch that gives `f`: what the branch sees, and the stream after it.
struct Sublayer {
  std::vector<double> branch_input, stream;
};
Sublayer one_sublayer(const std::string& placement, const std::vector<real>& x, const std::vector<real>& f,
                      const Options& options) {
  ParamStore store;
  Graph graph(store, {1, 1});
  NormChoice norm;
  norm.def = find_norm("layernorm");
  norm.eps = 1e-5;
  const auto constant = [&](const char* name) {
    ParamSpec spec;
    spec.name = name;
    spec.shape = {1, 1, 4};
    return graph.param(spec);
  };
  const Var x_var = constant("x"), f_var = constant("f");
  const Placement& p = *find_placement(placement);
  Wire wire(graph, options, 2);
  wire.enter(p, norm, 0);
  Var seen;
  Branch branch = [&](Var in) {
    seen = affine(in, 1, 0);
    return f_var;
  };
  const Var out = affine(p.sublayer(wire, {x_var, {}}, branch).x, 1, 0);
  graph.keep(seen);
  graph.keep(out);
  graph.plan(Plan::inference);
  store.allocate();
  store.initialize(1);
  std::copy(x.begin(), x.end(), store.value(store.find("x")));
  std::copy(f.begin(), f.end(), store.value(store.find("f")));
  Workspace work(graph, false);
  graph.prepare();
  graph.forward(work, Pass{});
  const auto values = [&](Var v) {
    const real* row = graph.value(work, v).row(0);
    return std::vector<double>(row, row + 4);
  };
  return {values(seen), values(out)};
}

}  // namespace

TEST_CASE("branches that give nothing leave Pre-Norm's stream as it is, bit for bit, and Post-Norm's normed") {
  CHECK(stream_of({"model.placement=pre", "model.final_norm=off"}) == std::vector<double>{1, 2, 3, 4});
  CHECK(stream_of({"model.placement=sandwich", "model.final_norm=off"}) == std::vector<double>{1, 2, 3, 4});
  CHECK(stream_of({"model.placement=none"}) == std::vector<double>{1, 2, 3, 4});
  check_close(stream_of({"model.placement=post"}), kNormed, 1e-4);
  check_close(stream_of({"model.placement=deepnorm"}), kNormed, 1e-4);
}

TEST_CASE("the final norm keeps the logits from growing with the stream") {
  for (const char* placement : {"pre", "sandwich"}) {
    for (const char* norm : {"layernorm", "rmsnorm"}) {
      const std::vector<std::string> sets = {str("model.placement=", placement)};
      INFO(placement << ", " << norm);
      check_close(stream_of(sets, 100, norm), stream_of(sets, 1, norm), 2e-5);
      CHECK(stream_of({sets[0], "model.final_norm=off"}, 100, norm) == std::vector<double>{100, 200, 300, 400});
    }
  }
}

TEST_CASE("each placement wires a sub-layer as its formula says") {
  const std::vector<real> x = {1, 2, 3, 4}, f = {4, 3, 2, 1};
  const std::vector<double> plain = {1, 2, 3, 4};
  const Sublayer deep = one_sublayer("deepnorm", x, f, {{"alpha", 2.0}});
  CHECK(deep.branch_input == plain);
  check_close(deep.stream, kNormed);  // LN([6, 7, 8, 9]); alpha on the branch would give the row with its sign flipped
  const Sublayer post = one_sublayer("post", x, {2, 0, 0, 6}, {});
  CHECK(post.branch_input == plain);
  // x + f = [3, 2, 3, 10]: mean 4.5, variance 10.25
  check_close(post.stream, {-0.46852, -0.78087, -0.46852, 1.71791});
  const Sublayer pre = one_sublayer("pre", x, f, {});
  check_close(pre.branch_input, kNormed);
  CHECK(pre.stream == std::vector<double>{5, 5, 5, 5});
  const Sublayer sandwich = one_sublayer("sandwich", x, f, {});
  check_close(sandwich.branch_input, kNormed);
  check_close(sandwich.stream, {2.34164, 2.44721, 2.55279, 2.65836});  // x + LN(f)
  const Sublayer none = one_sublayer("none", x, f, {});
  CHECK(none.branch_input == plain);
  CHECK(none.stream == std::vector<double>{5, 5, 5, 5});
}

TEST_CASE("DeepNorm's alpha follows from the depth: (2 N)^(1/4)") {
  // With N = 2 alpha is sqrt(2): [1.41421, 2.82843, 4.24264, 5.65685] + [1, 0, 0, 0] has mean 3.78553 and
  // variance 1.62684.
  check_close(one_sublayer("deepnorm", {1, 2, 3, 4}, {1, 0, 0, 0}, {}).stream, {-1.07514, -0.75039, 0.35838, 1.46715},
              2e-5);
}

TEST_CASE("the configured eps reaches final, block and QK norms") {
  // Variance 1.25, so with eps 0.5 the normed stream is (x - mean) / sqrt(1.75).
  const double once = std::sqrt(1 / 1.75);
  check_close(stream_of({"model.placement=pre", "norm.eps=0.5"}), {-1.5 * once, -0.5 * once, 0.5 * once, 1.5 * once});
  // Four norms after each other in two layers of Post-Norm: v <- v / (v + eps).
  double variance = 1.25;
  for (int i = 0; i < 4; ++i) variance /= variance + 0.5;
  const double factor = std::sqrt(variance / 1.25);
  check_close(stream_of({"model.placement=post", "norm.eps=0.5"}),
              {-1.5 * factor, -0.5 * factor, 0.5 * factor, 1.5 * factor});
  // RMS of q is sqrt(12.5), of both keys 1; with eps 5.5 q . k = (7 or -1) / (sqrt(18) sqrt(6.5)).
  const double step = 1 / std::sqrt(18 * 6.5);
  const double p = sigmoid((7 - (-1)) * step / std::sqrt(2.0));
  CHECK(attention_to_first({"model.position=none", "model.qk_norm=rmsnorm", "norm.eps=5.5"}, {1, 1}) ==
        Approx(p).epsilon(1e-5));
}

TEST_CASE("QK norms come before the rotation") {
  // q = [3, 4] with gain [2, 1]: normed, then turned by 1 rad, [-0.03509, 2.03931]; turned first it would be
  // [-0.98711, 1.32529]. Keys: [1, 1] at position 0; [1, -1] turned by 1 rad, [1.38177, 0.30117].
  const double first = -0.03509 + 2.03931, second = -0.03509 * 1.38177 + 2.03931 * 0.30117;
  const double p = sigmoid((first - second) / std::sqrt(2.0));
  CHECK(attention_to_first({"model.position=rope", "model.qk_norm=rmsnorm", "norm.eps=0"}, {2, 1}) ==
        Approx(p).epsilon(1e-4));
  CHECK(p == Approx(0.73442).epsilon(1e-4));
}

TEST_CASE("attention without QK norms divides the scores by the root of the head width") {
  CHECK(attention_to_first({"model.position=none"}, {}) == Approx(sigmoid(8 / std::sqrt(2.0))).epsilon(1e-5));
}

TEST_CASE("QK norms work on each head by itself, with one gain for all heads") {
  const std::vector<std::string> sets = {"model.qk_norm=rmsnorm", "norm.eps=0", "model.bias=false"};
  ModelProbe plain(small_model(11, sets), 1, 8), scaled(small_model(11, sets), 1, 8);
  CHECK(plain.spec("layers.0.attention.q_norm.weight").shape == Shape{8});
  real* q = scaled.weight("layers.0.attention.q.weight");
  for (int i = 0; i < 8 * 16; ++i)
    q[i] *= 4;  // the rows of head 0: its norm takes the factor out again, and only its own
  const std::vector<int32_t> tokens = {1, 5, 2, 9, 0, 3, 3, 7};
  check_close(scaled.logits(tokens), plain.logits(tokens), 1e-6);
}

TEST_CASE("rotary positions pair element i with i + dh / 2") {
  ParamStore store;
  Graph graph(store, {1, 2});
  ParamSpec spec;
  spec.name = "x";
  spec.shape = {1, 2, 4};
  const Var y = rope(graph.param(spec), 1);
  graph.keep(y);
  graph.plan(Plan::inference);
  store.allocate();
  for (int i = 0; i < 8; ++i) store.value(0)[i] = static_cast<real>(i % 4 + 1);
  Workspace work(graph, false);
  graph.prepare();
  graph.forward(work, Pass{});
  const real *at_0 = graph.value(work, y).row(0), *at_1 = graph.value(work, y).row(1);
  CHECK(std::vector<double>(at_0, at_0 + 4) == std::vector<double>{1, 2, 3, 4});
  check_close({at_1, at_1 + 4}, {-1.98411, 1.95990, 2.46238, 4.01980});
}

TEST_CASE("sinusoidal positions are sine and cosine side by side") {
  ModelProbe probe(small_model(4, {"model.layers=1", "model.width=4", "model.heads=1", "model.context=3",
                                   "model.placement=none", "model.position=sinusoidal", "model.bias=false"}),
                   1, 3);
  probe.clear("attention.out.weight");
  probe.clear("ffn.down.weight");
  probe.clear("token.weight");
  probe.set("head.weight", {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1});
  // Angles t and t / 100.
  check_close(probe.logits({0, 0, 0}),
              {0, 1, 0, 1, 0.841471, 0.540302, 0.00999983, 0.99995, 0.909297, -0.416147, 0.0199987, 0.9998}, 1e-6);
}

TEST_CASE("no logit depends on later tokens under a norm that looks at one token, under every placement") {
  const std::vector<int32_t> tokens = {1, 5, 2, 9, 0, 3, 3, 7};
  for (const NormDef* norm : all_norms()) {
    for (const Placement* placement : all_placements()) {
      ModelProbe probe(small_model(11, {str("model.norm=", norm->name), str("model.placement=", placement->name),
                                        "model.qk_norm=layernorm", "model.position=rope"}),
                       1, 8);
      const std::vector<double> before = probe.logits(tokens, true);
      std::vector<int32_t> other = tokens;
      other[5] = 4;
      const std::vector<double> after = probe.logits(other, true);
      const bool earlier_same = std::equal(before.begin(), before.begin() + 5 * 11, after.begin());
      INFO(norm->name << ", " << placement->name);
      bool has_norms = false;
      for (int p = 0; p < probe.store().count(); ++p) {
        const std::string& name = probe.store().spec(p).name;
        has_norms = has_norms || name.find(".norm_") != std::string::npos || name.rfind("final_norm", 0) == 0;
      }
      CHECK(earlier_same == (norm->reach == Reach::token || !has_norms));
      CHECK_FALSE(std::equal(before.begin() + 5 * 11, before.end(), after.begin() + 5 * 11));
    }
  }
}

TEST_CASE("a norm that leaks future tokens says so in one sentence, others say nothing") {
  for (const NormDef* norm : all_norms()) {
    INFO(norm->name);
    const auto warnings = model_warnings(small_model(11, {str("model.norm=", norm->name), "model.width=64"}));
    CHECK(warnings.size() == (norm->reach == Reach::token ? 0u : 1u));
    if (!warnings.empty()) CHECK(warnings[0].find("future tokens leak") != std::string::npos);
  }
}

TEST_CASE("an init that leaves out the placement's gains says so") {
  CHECK(model_warnings(small_model(11, {"model.placement=deepnorm", "model.init=gpt2"})).size() == 1);
  CHECK(model_warnings(small_model(11, {"model.placement=deepnorm", "model.init=xavier"})).size() == 1);
  CHECK(model_warnings(small_model(11, {"model.placement=deepnorm"})).empty());
}
