// Every placement against its paper: its sub-layers written out again with plain vectors. For the rest see
// placements_model_test.cpp.
#include <cmath>

#include "wired.h"

using namespace normlab;

TEST_CASE("ResiDual: one branch feeds a normed stream and a summing one, whose norm joins at the end") {
  const Wired w = wired("residual", {kF, kG});
  const V x1 = ln(kX + kF), x2 = ln(x1 + kG);
  check_row(w.seen[0], kX);
  check_row(w.seen[1], x1);
  check_row(w.stream[1], x2);
  check_row(w.result, ln(kX + kF + kG) + x2);
  // The scale of the second stream is taken out again by its norm, up to eps.
  check_row(wired("residual", {kF, kG}, 2, {{"scale", 8.0}}).result, w.result);
}

TEST_CASE("placements of the pre-norm kind: what the branch sees and how it is added") {
  const Wired subln = wired("subln", {kF});
  check_row(subln.seen[0], ln(kX));
  check_row(subln.stream[0], kX + kF);
  const Wired reordered = wired("reordered", {kF, kG});
  check_row(reordered.seen[0], kX);
  check_row(reordered.stream[1], kX + ln(kF) + ln(kG));
  // Swin V2's start: gain and bias 0, so every sub-layer is the identity
  CHECK((wired("reordered", {kF, kG}, 2, {{"gain", 0.0}}).result == kX).min());
  const Wired scaled = wired("scaled_pre", {kF, kG});
  check_row(scaled.seen[1], ln(0.9 * kX + kF));
  check_row(scaled.stream[1], 0.81 * kX + 0.9 * kF + kG);
  check_row(wired("scaled_pre", {kF}, 2, {{"alpha", 0.8}}).stream[0], 0.8 * kX + kF);
  const Wired sandwich = wired("sandwich", {kF}, 2, {{"embedding_norm", 1.0}});
  check_row(sandwich.seen[0], ln(ln(kX)));
  check_row(sandwich.stream[0], ln(kX) + ln(kF));
}

TEST_CASE("LayerNorm Scaling divides both norms of layer l by sqrt(l), counted from 1") {
  const Wired w = wired("lns", std::vector<V>(10, V{0, 0, 0, 0}), 5);
  for (std::size_t i = 0; i < 10; ++i) {
    const double l = static_cast<double>(i / 2 + 1);
    check_row(w.seen[i], ln(kX) / std::sqrt(l));  // 1, 0.70711, 0.57735, 0.5, 0.44721
    CHECK((w.stream[i] == kX).min());
  }
  CHECK(w.seen[6][3] / w.seen[0][3] == Approx(0.5));
}

TEST_CASE("learned branch weights: LayerScale per channel, SkipInit per branch, ReZero per layer") {
  const V gamma = {2, 0.5, -1, 0};
  const Wired layerscale = wired("layerscale", {kF}, 2, {}, {{"0.gamma", gamma}});
  check_row(layerscale.seen[0], ln(kX));
  check_row(layerscale.stream[0], kX + gamma * kF);
  check_row(wired("layerscale", {kF}).stream[0], kX + 0.1 * kF);

  const Wired skipinit = wired("skipinit", {kF, kG}, 2, {}, {{"0.alpha", V{3}}, {"1.alpha", V{-2}}});
  check_row(skipinit.seen[1], kX + 3.0 * kF);
  check_row(skipinit.stream[1], kX + 3.0 * kF - 2.0 * kG);
  // one alpha for attention and ffn of a layer
  const Wired rezero = wired("rezero", {kF, kG, kH, kF}, 2, {}, {{"0.alpha", V{3}}, {"2.alpha", V{-2}}});
  check_row(rezero.stream[1], kX + 3.0 * (kF + kG));
  check_row(rezero.stream[3], kX + 3.0 * (kF + kG) - 2.0 * (kH + kF));
  // both begin as the identity, bit for bit
  for (const char* name : {"rezero", "skipinit"}) {
    CHECK((wired(name, {kF, kG, kH, kF}).result == kX).min());
    check_row(wired(name, {kF, kG}, 2, {{"alpha", 0.5}}).result, kX + 0.5 * (kF + kG));
  }
}

TEST_CASE("placements of the post-norm kind: KEEL, B2T, Admin") {
  const Wired keel = wired("keel", {kF, kG, kH, kF});  // N = 2, alpha = 4
  const V k0 = kX + kF, k1 = ln(k0 + kG), k2 = ln(4.0 * k1 + kH), k3 = ln(4.0 * k2 + kF);
  check_row(keel.seen[0], ln(kX));
  check_row(keel.stream[0], k0);
  check_row(keel.seen[1], ln(k0));
  check_row(keel.stream[1], k1);
  check_row(keel.seen[2], ln(k1));
  check_row(keel.stream[2], k2);
  check_row(keel.stream[3], k3);
  check_row(wired("keel", {kF, kG, kH}, 2, {{"alpha", 2.0}}).stream[2], ln(2.0 * k1 + kH));

  const Wired b2t = wired("b2t", {kF, kG, kH, kF});
  const V h0 = ln(kX + kF), y0 = ln(kX + h0 + kG), h1 = ln(y0 + kH), y1 = ln(y0 + h1 + kF);
  check_row(b2t.seen[1], h0);
  check_row(b2t.stream[1], y0);
  check_row(b2t.seen[3], h1);
  check_row(b2t.result, y1);

  const double omega = std::sqrt(5 / std::log(5.0) - 1);  // M = 4
  const Wired admin = wired("admin", {kF, kG});
  const V a0 = ln(omega * kX + kF);
  check_row(admin.seen[0], kX);
  check_row(admin.stream[0], a0);
  check_row(admin.stream[1], ln(omega * a0 + kG));
  const V weight = {1, 2, -1, 0.5};
  check_row(wired("admin", {kF}, 2, {}, {{"0.omega", weight}}).stream[0], ln(weight * kX + kF));
}

TEST_CASE("parallel branches read the same stream, through one norm each or one for both") {
  const Wired two = wired("parallel", {kF, kG, kH, kF});
  const V x1 = kX + kF + kG;
  check_row(two.seen[0], ln(kX));
  check_row(two.seen[1], ln(kX));
  check_row(two.stream[0], kX);
  check_row(two.stream[1], x1);
  check_row(two.seen[2], ln(x1));
  check_row(two.seen[3], ln(x1));
  check_row(two.result, x1 + kH + kF);
  const V weight = {1, 2, -1, 0.5};
  const Wired other = wired("parallel", {kF, kG}, 2, {}, {{"1.norm_in.weight", weight}});
  check_row(other.seen[0], ln(kX));
  check_row(other.seen[1], weight * ln(kX));
  const Wired one = wired("parallel", {kF, kG, kH, kF}, 2, {{"norms", 1}}, {{"0.norm_in.weight", weight}});
  check_row(one.seen[0], weight * ln(kX));
  check_row(one.seen[1], weight * ln(kX));
  check_row(one.stream[1], x1);
  check_row(one.seen[3], ln(x1));
  check_row(one.result, x1 + kH + kF);
}

TEST_CASE("Mix-LN: the first quarter of the layers is Post-Norm, the others Pre-Norm") {
  const Wired w = wired("mixln", {kF, kG, kH, kF, kG, kH, kF, kG}, 4);
  const V x1 = ln(kX + kF), x2 = ln(x1 + kG);
  check_row(w.seen[0], kX);
  check_row(w.stream[1], x2);
  check_row(w.seen[2], ln(x2));
  check_row(w.stream[3], x2 + kH + kF);
  check_row(w.result, x2 + kH + kF + kG + kH + kF + kG);
  // 3 of 12 as in the paper's 130M model; floor elsewhere, and a product that rounds to just below an integer counts
  const auto post_layers = [](int64_t layers, double share) {
    const Wired all =
        wired("mixln", std::vector<V>(static_cast<std::size_t>(2 * layers), kF), layers, {{"share", share}});
    int count = 0;
    for (int64_t layer = 0; layer < layers; ++layer) {
      const V& out = all.stream[static_cast<std::size_t>(2 * layer + 1)];
      count += std::abs((out * out).sum() - 4) < 1e-3 ? 1 : 0;  // a normed row has length sqrt(4)
    }
    return count;
  };
  CHECK(post_layers(12, 0.25) == 3);
  CHECK(post_layers(11, 0.25) == 2);
  CHECK(post_layers(100, 0.29) == 29);
  CHECK(post_layers(6, 0) == 0);
  CHECK(post_layers(6, 1) == 6);
}

TEST_CASE(
    "HybridNorm: no norm before attention, the feed-forward around a normed stream; its star's first layer is pre") {
  const Wired w = wired("hybridnorm", {kF, kG, kH});
  const V n = ln(kX + kF);
  check_row(w.seen[0], kX);
  check_row(w.stream[0], kX + kF);
  check_row(w.seen[1], n);
  check_row(w.stream[1], n + kG);
  check_row(w.seen[2], n + kG);
  const Wired star = wired("hybridnorm", {kF, kG, kH, kF}, 2, {{"first_pre", 1.0}});
  check_row(star.seen[0], ln(kX));
  check_row(star.seen[1], n);
  check_row(star.stream[1], kX + kF + kG);
  check_row(star.seen[2], kX + kF + kG);
  check_row(star.stream[3], ln(kX + kF + kG + kH) + kF);
}

TEST_CASE("NormFormer: a norm after attention only, a learned factor on the feed-forward's skip where asked for") {
  const Wired w = wired("normformer", {kF, kG});
  const V x1 = kX + ln(kF);
  check_row(w.seen[0], ln(kX));
  check_row(w.stream[0], x1);
  check_row(w.seen[1], ln(x1));
  check_row(w.stream[1], x1 + kG);
  const V lambda = {1, 0.5, -1, 3};
  const Wired scaled = wired("normformer", {kF, kG}, 2, {{"scale_skip", 1.0}}, {{"1.skip_scale", lambda}});
  check_row(scaled.stream[0], x1);
  check_row(scaled.stream[1], lambda * x1 + kG);
}
