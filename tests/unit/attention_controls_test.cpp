// What keeps attention and the output in bounds: norms of queries, keys and values, the scale, the caps, the z loss. By
// hand on two keys.
#include <cmath>

#include "../probe_rig.h"
#include "attention_to_first.h"
#include "core/text.h"
#include "train/combinations.h"

using namespace normlab;

namespace {

const std::vector<int32_t> kTokens = {1, 5, 2, 9, 0, 3, 3, 7};

std::vector<std::string> warnings_of(const std::vector<std::string>& sets) {
  return model_warnings(small_model(11, sets));
}

std::vector<std::string> config_warnings_of(const std::vector<std::string>& sets) {
  return config_warnings(small_run(sets));
}

std::string error_of(const std::vector<std::string>& sets) {
  try {
    small_run(sets);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("attention_scale multiplies the products of queries and keys, 7 and -1") {
  CHECK(attention_to_first({"model.position=none", "model.attention_scale=0.1"}, {}) ==
        Approx(sigmoid(0.8)).epsilon(1e-6));
  CHECK(small_run({}).attention_scale == 1 / std::sqrt(8.0));  // two heads of 16 channels
}

TEST_CASE("a learned scale starts at attention_scale and takes its place") {
  TwoKeys model({"model.position=none", "model.attention_scale=0.25", "model.attention_scale_learned=true"});
  CHECK(model.spec("layers.0.attention.scale").shape == Shape{1});
  CHECK(model.to_first() == Approx(sigmoid(2)).epsilon(1e-6));
  model.set("layers.0.attention.scale", {0.1});
  CHECK(model.to_first() == Approx(sigmoid(0.8)).epsilon(1e-6));
  TwoKeys from_auto({"model.attention_scale_learned=true"});
  CHECK(static_cast<double>(from_auto.weight("layers.0.attention.scale")[0]) == Approx(1 / std::sqrt(2.0)));
}

TEST_CASE("attention_cap bends the scores after the scale") {
  // Scores 3.5 and -0.5: 2 tanh(1.75) = 1.88275, 2 tanh(-0.25) = -0.48984.
  const std::vector<std::string> sets = {"model.position=none", "model.attention_scale=0.5", "model.attention_cap=2"};
  CHECK(attention_to_first(sets, {}) == Approx(sigmoid(1.88275 + 0.48984)).epsilon(1e-5));
  std::vector<std::string> learned = sets;
  learned.push_back("model.attention_scale_learned=true");
  CHECK(attention_to_first(learned, {}) == Approx(sigmoid(1.88275 + 0.48984)).epsilon(1e-5));
}

TEST_CASE("QK norms come after the rotation where asked to") {
  // q = [3, 4] turned by 1 rad, normed, times the gain [2, 1]: [-0.98711, 1.32529]. Keys [1, 1] and [1, -1] turned by 1
  // rad, [1.38177, 0.30117], have the rms 1.
  const double first = -0.98711 + 1.32529, second = -0.98711 * 1.38177 + 1.32529 * 0.30117;
  CHECK(attention_to_first(
            {"model.position=rope", "model.qk_norm=rmsnorm", "model.qk_norm_at=after_rope", "norm.eps=0"}, {2, 1}) ==
        Approx(sigmoid((first - second) / std::sqrt(2.0))).epsilon(1e-4));
}

TEST_CASE("QK norms over the width see all heads at once and have a gain per channel") {
  const std::vector<std::string> sets = {"model.qk_norm=rmsnorm", "norm.eps=0", "model.bias=false",
                                         "model.qk_norm_over=width", "model.kv_heads=1"};
  ModelProbe plain(small_model(11, sets), 1, 8), one_head(small_model(11, sets), 1, 8),
      all(small_model(11, sets), 1, 8);
  CHECK(plain.spec("layers.0.attention.q_norm.weight").shape == Shape{16});
  CHECK(plain.spec("layers.0.attention.k_norm.weight").shape == Shape{8});
  for (int i = 0; i < 8 * 16; ++i) one_head.weight("layers.0.attention.q.weight")[i] *= 4;
  for (int i = 0; i < 16 * 16; ++i) all.weight("layers.0.attention.q.weight")[i] *= 4;
  const std::vector<double> logits = plain.logits(kTokens), other = one_head.logits(kTokens);
  check_close(all.logits(kTokens), logits, 1e-6);
  double apart = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) apart = std::max(apart, std::abs(logits[i] - other[i]));
  CHECK(apart > 1e-3);
}

TEST_CASE("v_norm norms each head's values: [1, 0] has the rms 1 / sqrt(2)") {
  const std::vector<std::string> sets = {"model.position=none", "model.v_norm=rmsnorm"};
  CHECK(attention_to_first(sets, {}) ==
        Approx(std::sqrt(2.0) * attention_to_first({"model.position=none"}, {})).epsilon(1e-5));
  ModelProbe shared(small_model(11, {"model.v_norm=layernorm"}), 1, 8);
  CHECK(shared.spec("layers.0.attention.v_norm.weight").shape == Shape{8});
  CHECK(shared.spec("layers.0.attention.v_norm.bias").shape == Shape{8});
}

TEST_CASE("logit_cap bends each logit z to c tanh(z / c)") {
  ModelProbe plain(small_model(11), 1, 8), capped(small_model(11, {"model.logit_cap=0.5"}), 1, 8);
  std::vector<double> wanted = plain.logits(kTokens);
  for (double& z : wanted) z = 0.5 * std::tanh(z / 0.5);
  check_close(capped.logits(kTokens), wanted, 1e-6);
  CHECK(std::any_of(wanted.begin(), wanted.end(), [](double z) { return std::abs(z) > 0.3; }));
}

TEST_CASE("the z loss reaches gradients but not the losses that are shown") {
  ProbeRig plain({}), with({"train.z_loss=0.5"});
  CHECK(with.trainer.evaluate(2) == plain.trainer.evaluate(2));
  const StepResult a = plain.trainer.step(), b = with.trainer.step();
  CHECK(b.loss == a.loss);
  CHECK(std::abs(b.grad_norm - a.grad_norm) > 0.01 * a.grad_norm);
  CHECK(plain.probe.measure()[0].stream_grad != with.probe.measure()[0].stream_grad);
}

TEST_CASE("the layers' table shows the scores as softmax gets them") {
  const auto measured = [](const std::string& scale, const std::vector<std::string>& more = {}, double learned = 0) {
    std::vector<std::string> sets = {"model.placement=none", "model.norm=none", "model.bias=false",
                                     "model.attention_scale=" + scale};
    sets.insert(sets.end(), more.begin(), more.end());
    ProbeRig rig(sets);
    if (learned > 0) rig.fill("layers.0.attention.scale", static_cast<real>(learned));
    return rig.probe.measure()[0];
  };
  const ProbeRow plain = measured("2");
  const double most = plain.attention_logit_max.value();
  CHECK(most > 0.5);
  CHECK(measured("0.5").attention_logit_max.value() == Approx(most / 4).epsilon(1e-5));
  CHECK(measured("2", {"model.attention_scale_learned=true"}, 0.5).attention_logit_max.value() ==
        Approx(most / 4).epsilon(1e-5));
  const ProbeRow capped = measured("2", {"model.attention_cap=0.25"});
  CHECK(capped.attention_logit_max.value() == Approx(0.25 * std::tanh(most / 0.25)).epsilon(1e-5));
  CHECK(capped.attention_entropy.value() > plain.attention_entropy.value());
}

TEST_CASE("a scale that does not suit the length of normed queries and keys is a warning") {
  const auto one = [](const std::vector<std::string>& sets, const char* words) {
    const std::vector<std::string> found = warnings_of(sets);
    CHECK(found.size() == 1);
    CHECK((!found.empty() && found[0].find(words) != std::string::npos));
  };
  one({"model.qk_norm=l2norm"}, "nearly uniform");
  one({"model.qk_norm=l2norm"}, "log2(T^2 - T), 5.81 for this context");  // T = 8: log2(56)
  one({"model.qk_norm=l2norm", "model.attention_scale_learned=true"}, "nearly uniform");
  CHECK(warnings_of({"model.qk_norm=l2norm", "model.attention_scale=10"}).empty());
  for (const char* norm : {"rmsnorm", "layernorm", "scalenorm"}) {
    one({str("model.qk_norm=", norm), "model.attention_scale=1"}, "scores reach 8 and attention saturates");
    CHECK(warnings_of({str("model.qk_norm=", norm)}).empty());
    CHECK(warnings_of({str("model.qk_norm=", norm), "model.attention_scale=0.9"}).empty());
  }
  CHECK(warnings_of({"model.attention_scale=5"}).empty());
}

TEST_CASE("keys of QK norms without effect are warnings; caps near 0 and widths that do not divide are refused") {
  CHECK(
      config_warnings_of({"model.qk_norm_over=width"}) ==
      std::vector<std::string>{"'model.qk_norm_over' has no effect: a model without 'model.qk_norm' does not read it"});
  CHECK(config_warnings_of({"model.qk_norm_at=after_rope", "model.qk_norm=rmsnorm"}) ==
        std::vector<std::string>{"'model.qk_norm_at' has no effect: a model without RoPE does not read it"});
  CHECK(config_warnings_of({"model.qk_norm_at=after_rope", "model.qk_norm=rmsnorm", "model.position=rope"}).empty());
  CHECK(error_of({"model.attention_cap=1e-9"}) ==
        "--set model.attention_cap: 'model.attention_cap' must be 0 or at least 0.001, not 1e-09");
  CHECK(error_of({"model.qk_norm=groupnorm", "norm.groups=16"}).find("(16) must divide the width of a head (8)") !=
        std::string::npos);
  CHECK(error_of({"model.qk_norm=groupnorm", "norm.groups=16", "model.qk_norm_over=width"}) == "no error");
  CHECK(error_of({"model.qk_norm=groupnorm", "norm.groups=16", "model.qk_norm_over=width", "model.kv_heads=1"})
            .find("(16) must divide the width of the keys (8)") != std::string::npos);
  CHECK(error_of({"model.v_norm=groupnorm", "norm.groups=3"}).find("as 'model.v_norm' is 'groupnorm'") !=
        std::string::npos);
  CHECK(small_run({"model.norm=none", "model.v_norm=l2norm"}).norm_eps == 1e-3);
}
