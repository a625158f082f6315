// The gradients of layers.csv against finite differences of the loss, and that every placement gives whole rows.
#include <cmath>

#include "../probe_rig.h"
#include "core/text.h"

using namespace normlab;

namespace {

// The mean loss of a rig's windows, by a graph of inference alone.
class Loss {
 public:
  explicit Loss(ProbeRig& rig) : rig_(rig), graph_(rig.trainer.params(), {1, rig.model.context}) {
    build_decoder(graph_, rig.model);
    graph_.plan(Plan::inference);
    graph_.allocate_shared();
    work_.emplace(graph_, false);
  }
  double now() {
    Pass pass;
    pass.tokens = rig_.tokens.data(), pass.targets = rig_.targets.data();
    graph_.prepare();
    graph_.forward(*work_, pass);
    return static_cast<double>(graph_.loss(*work_)) / static_cast<double>(rig_.tokens.size());
  }
  // Norm of the loss's gradient with respect to parameters, five points a derivative (error of order h^4). The loss, of
  // about 3, is rounded by some 3e-7: by h, 1e-5 in a derivative.
  double gradient_norm(const std::vector<std::string>& names) {
    constexpr double kStep = 0.04;
    double sum = 0;
    for (const std::string& name : names) {
      for (int64_t i = 0; i < rig_.count(name); ++i) {
        real& x = rig_.value(name)[i];
        const real before = x;
        const auto at = [&](double h) {
          x = static_cast<real>(static_cast<double>(before) + h);
          return now();
        };
        const double slope = (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);
        x = before;
        sum += slope * slope;
      }
    }
    return std::sqrt(sum);
  }

 private:
  ProbeRig& rig_;
  Graph graph_;
  std::optional<Workspace> work_;
};

}  // namespace

TEST_CASE("gradient of the stream by finite differences: at one position a branch's bias moves the stream alone") {
  ProbeRig rig({"model.placement=pre", "model.context=1"});
  const std::vector<ProbeRow> rows = rig.probe.measure();
  Loss loss(rig);
  const char* const before[] = {"embedding.position.weight", "layers.0.attention.out.bias", "layers.0.ffn.down.bias",
                                "layers.1.attention.out.bias"};
  for (std::size_t i = 0; i < 4; ++i) {
    INFO(before[i]);
    CHECK(rows[i].stream_grad == Approx(loss.gradient_norm({before[i]})).epsilon(1e-3));
    CHECK(rows[i].stream_grad > 0.05);
  }
  CHECK(!rows[0].attention_entropy);  // one position has no choice
}

TEST_CASE("gradient of the stream over all positions, and of the weight groups, by finite differences") {
  ProbeRig rig({"model.placement=post", "model.activation=swiglu", "model.kv_heads=1"});
  const std::vector<ProbeRow> rows = rig.probe.measure();
  Loss loss(rig);
  const std::string a = "layers.1.attention.", f = "layers.1.ffn.";
  CHECK(rows[0].stream_grad == Approx(loss.gradient_norm({"embedding.position.weight"})).epsilon(1e-3));
  CHECK(rows[2].grad_in == Approx(loss.gradient_norm({a + "q.weight", a + "k.weight", a + "v.weight"})).epsilon(1e-3));
  CHECK(rows[2].grad_out == Approx(loss.gradient_norm({a + "out.weight"})).epsilon(1e-3));
  CHECK(rows[3].grad_in == Approx(loss.gradient_norm({f + "up.weight", f + "gate.weight"})).epsilon(1e-3));
  CHECK(rows[3].grad_out == Approx(loss.gradient_norm({f + "down.weight"})).epsilon(1e-3));
}

TEST_CASE("queries and keys are those that meet: after their norm and their rotation") {
  // A norm per head makes their length sqrt(dh) whatever the weights: |q k| / sqrt(dh) <= sqrt(dh).
  ProbeRig normed({"model.qk_norm=rmsnorm", "model.heads=4"});
  for (int64_t i = 0; i < 256; ++i) normed.value("layers.0.attention.q.weight")[i] *= 1000;
  const double most = normed.probe.measure()[0].attention_logit_max.value();
  CHECK(most <= 2.0001);
  CHECK(most > 0.5);
  // One token everywhere: without rotation all keys look alike, with it the nearness of a position tells.
  for (const bool rotated : {false, true}) {
    ProbeRig rig({rotated ? "model.position=rope" : "model.position=none"});
    real* table = rig.value("embedding.token.weight");
    for (int64_t i = 16; i < rig.count("embedding.token.weight"); ++i) table[i] = table[i % 16];
    const ProbeRow r = rig.probe.measure()[0];
    CHECK(r.token_similarity == Approx(1));
    CHECK((std::abs(r.attention_entropy.value() - 1) > 1e-4) == rotated);
  }
}

TEST_CASE("every placement and norm gives two whole rows a layer, with a gradient at every stream") {
  std::vector<std::string> variants;
  for (const Placement* placement : all_placements()) variants.push_back(str("model.placement=", placement->name));
  for (const NormDef* norm : all_norms()) variants.push_back(str("model.norm=", norm->name));
  for (const std::string& variant : variants) {
    INFO(variant);
    std::vector<std::string> sets = {variant, "model.layers=3"};
    for (const OptionSpec& option : find_placement(small_run({variant}).placement)->options) {
      // A branch that starts at 0 has no gradient yet.
      const bool starts_at_zero = option.kind == OptionSpec::Kind::number && option.standard == 0;
      if (starts_at_zero) sets.push_back(str("placement.", option.name, "=0.5"));
    }
    ProbeRig rig(sets, 4);
    const std::vector<ProbeRow> rows = rig.probe.measure();
    REQUIRE(rows.size() == 6);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const ProbeRow& r = rows[i];
      INFO(layers_row(0, r));
      CHECK(r.layer == static_cast<int64_t>(i) / 2);
      CHECK(r.sublayer == (i % 2 == 0 ? "attention" : "ffn"));
      for (const double x : {r.stream_rms, r.stream_max, r.branch_rms, r.branch_max, r.branch_ratio, r.stream_grad,
                             r.grad_in, r.grad_out, r.angular_distance})
        CHECK((std::isfinite(x) && x > 0));
      CHECK(std::abs(r.token_similarity) <= 1);
      CHECK(r.attention_entropy.has_value() == (i % 2 == 0));
      if (r.attention_entropy) CHECK((*r.attention_entropy > 0 && *r.attention_entropy < 1 + 1e-9));
    }
  }
}

TEST_CASE("a probe drops nothing out, and a norm over the batch takes the probing batch's own statistics") {
  ProbeRig plain({}), dropping({"model.dropout=0.5"});
  CHECK(layers_row(0, dropping.probe.measure()[3]) == layers_row(0, plain.probe.measure()[3]));
  // Under Post-Norm the stream past the first sub-layer leaves a norm: mean 0 and variance 1 in every channel.
  ProbeRig whole({"model.norm=batchnorm", "model.placement=post"}, 4);
  CHECK(whole.probe.measure()[1].stream_rms == Approx(1).epsilon(1e-3));
}

TEST_CASE("the memory of a probe counts a value and a gradient of every sub-layer's stream and branch") {
  const auto memory = [](int64_t layers) {
    return ProbeRig({str("model.layers=", layers), "model.context=64"}, 4).probe.memory();
  };
  const double a_layer = 2 * 2 * 2 * 4 * 64 * 16 * sizeof(real);  // sub-layers, tensors, value and gradient, B, T, C
  CHECK(memory(9) - memory(8) > a_layer);
  CHECK(memory(9) - memory(8) == Approx(memory(8) - memory(7)));
}

TEST_CASE("norms over the batch are probed with the training batch up to 16 sequences, others with up to 4") {
  const ModelConfig whole = small_model(5, {"model.norm=batchnorm"}), token = small_model(5);
  for (const auto& [batch, of_whole, of_token] : {std::array<int64_t, 3>{2, 2, 2}, {8, 8, 4}, {64, 16, 4}}) {
    CHECK(Probe::sequences_for(whole, batch) == of_whole);
    CHECK(Probe::sequences_for(token, batch) == of_token);
  }
}
