// Initial weights of some placements, and the names and shapes of all parameters.
#include <cmath>
#include <map>
#include <set>

#include "../model_probe.h"
#include "../small_run.h"
#include "core/rng.h"
#include "core/text.h"

using namespace normlab;

namespace {

double drawn_std(const ParamStore& store, int p) {
  const int64_t n = store.spec(p).shape.count();
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::pow(static_cast<double>(store.value(p)[i]), 2);
  return std::sqrt(sum / static_cast<double>(n));
}

// Every parameter of a 2-layer model, name -> shape.
std::map<std::string, std::string> parameters(const std::vector<std::string>& sets) {
  ParamStore store;
  Graph graph(store, {1, 8});
  build_decoder(graph, small_model(11, sets));
  std::map<std::string, std::string> out;
  for (int p = 0; p < store.count(); ++p) out[store.spec(p).name] = store.spec(p).shape.text();
  return out;
}

int norms_of(const std::string& placement, const std::string& final_norm = "auto") {
  const auto all = parameters({"model.placement=" + placement, "model.final_norm=" + final_norm});
  return static_cast<int>(std::count_if(all.begin(), all.end(), [](const auto& entry) {
    return entry.first.find("norm") != std::string::npos && entry.first.ends_with(".weight");
  }));
}

double constant(const char* option, int64_t layers) {
  const Placement& deepnorm = *find_placement("deepnorm");
  return option_value({}, deepnorm.options, option, layers);
}

}  // namespace

TEST_CASE("DeepNorm draws the matrices of 12 layers as its paper says, queries and keys unscaled") {
  ModelProbe probe(small_model(65, {"model.layers=12", "model.width=64", "model.heads=4", "model.placement=deepnorm"}),
                   1, 8);
  for (int layer = 0; layer < 12; ++layer) {
    for (const auto& [name, std] : std::map<std::string, double>{{"attention.q", 0.12500},
                                                                 {"attention.k", 0.12500},
                                                                 {"attention.v", 0.03993},
                                                                 {"attention.out", 0.03993},
                                                                 {"ffn.up", 0.02526},
                                                                 {"ffn.down", 0.02526}}) {
      const int p = probe.store().find(str("layers.", layer, ".", name, ".weight"));
      INFO(layer << " " << name);
      CHECK(drawn_std(probe.store(), p) == Approx(std).epsilon(0.05));
    }
  }
}

TEST_CASE("DeepNorm's constants are those of its paper at every depth, and can be set") {
  for (const auto& [layers, alpha, beta] :
       {std::tuple{6, 1.8612, 0.3799}, {18, 2.4495, 0.2887}, {100, 3.7606, 0.1880}, {500, 5.6234, 0.1257}}) {
    INFO(layers);
    CHECK(std::abs(constant("alpha", layers) - alpha) <= 5e-5);
    CHECK(std::abs(constant("beta", layers) - beta) <= 5e-5);
  }
  ParamStore store;
  Graph graph(store, {1, 8});
  build_decoder(graph, small_model(11, {"model.placement=deepnorm", "placement.beta=0.5"}));
  const double xavier = std::sqrt(2.0 / 32);
  CHECK(store.spec(store.find("layers.1.attention.v.weight")).std == Approx(0.5 * xavier));
  CHECK(store.spec(store.find("layers.1.attention.q.weight")).std == Approx(xavier));
}

TEST_CASE("the gpt2 init divides exactly the two matrices of each layer that write into the stream by sqrt(2 N)") {
  for (const auto& [layers, scaled_std] : {std::pair{2, 0.01}, {4, 0.00707}, {6, 0.00577}, {12, 0.00408}}) {
    INFO(layers);
    ParamStore store;
    Graph graph(store, {1, 8});
    build_decoder(graph, small_model(65, {str("model.layers=", layers), "model.width=256", "model.init=gpt2"}));
    int scaled = 0;
    for (int p = 0; p < store.count(); ++p) {
      const ParamSpec& spec = store.spec(p);
      if (spec.role == Role::vector) continue;
      const bool writes = spec.name.ends_with("attention.out.weight") || spec.name.ends_with("ffn.down.weight");
      scaled += spec.std < 0.02 ? 1 : 0;
      INFO(spec.name);
      CHECK(spec.std == Approx(writes ? scaled_std : 0.02).epsilon(1e-3));
    }
    CHECK(scaled == 2 * layers);
  }
}

TEST_CASE("a matrix draws the same numbers whatever stands around it") {
  ModelProbe pre(small_model(11, {"model.placement=pre"}), 1, 8),
      post(small_model(11, {"model.placement=post", "model.qk_norm=layernorm"}), 1, 8);
  for (const std::string name : {"layers.1.ffn.up.weight", "layers.0.attention.q.weight", "head.weight"}) {
    CHECK(std::equal(pre.weight(name), pre.weight(name) + pre.spec(name).shape.count(), post.weight(name)));
  }
  CHECK_FALSE(pre.weight("layers.0.attention.q.weight")[0] == pre.weight("layers.1.attention.q.weight")[0]);
}

TEST_CASE("a tied model starts with a loss of ln V under the gpt2 init, for any vocabulary") {
  for (const int64_t vocabulary : {65, 128, 256}) {
    for (const char* norm : {"layernorm", "rmsnorm", "groupnorm"}) {
      ModelProbe probe(small_model(vocabulary, {"model.tie_embeddings=true", "model.init=gpt2", "model.width=64",
                                                str("model.norm=", norm)}),
                       4, 8);
      CHECK(probe.store().find("head.weight") == -1);
      std::vector<int32_t> tokens, targets;
      const Rng rng(7, stream_id("tokens"));
      for (uint64_t i = 0; i < 32; ++i) {
        tokens.push_back(static_cast<int32_t>(rng.below(2 * i, static_cast<uint64_t>(vocabulary))));
        targets.push_back(static_cast<int32_t>(rng.below(2 * i + 1, static_cast<uint64_t>(vocabulary))));
      }
      probe.logits(tokens, false, targets);
      INFO(vocabulary << " " << norm);
      CHECK(std::abs(probe.loss() - std::log(static_cast<double>(vocabulary))) < 0.3);
    }
  }
}

TEST_CASE("a model has exactly the parameters its placement asks for, named and shaped as in PyTorch") {
  const std::map<std::string, std::vector<std::string>> sites = {{"post", {"norm_post"}},
                                                                 {"deepnorm", {"norm_post"}},
                                                                 {"pre", {"norm_in"}},
                                                                 {"sandwich", {"norm_in", "norm_out"}},
                                                                 {"none", {}}};
  for (const auto& [placement, norms] : sites) {
    std::map<std::string, std::string> wanted = {
        {"embedding.token.weight", "(11, 16)"}, {"embedding.position.weight", "(8, 16)"}, {"head.weight", "(11, 16)"}};
    for (const std::string layer : {"layers.0.", "layers.1."}) {
      for (const std::string name : {"q", "k", "v", "out"}) {
        const bool shared = name == "k" || name == "v";  // one key head for two query heads
        wanted[layer + "attention." + name + ".weight"] = shared ? "(8, 16)" : "(16, 16)";
        wanted[layer + "attention." + name + ".bias"] = shared ? "(8)" : "(16)";
      }
      for (const std::string norm : {"q_norm", "k_norm"}) {
        for (const std::string leaf : {"weight", "bias"}) wanted[layer + "attention." + norm + "." + leaf] = "(8)";
      }
      for (const std::string name : {"up", "gate"}) {
        wanted[layer + "ffn." + name + ".weight"] = "(48, 16)";
        wanted[layer + "ffn." + name + ".bias"] = "(48)";
      }
      wanted[layer + "ffn.down.weight"] = "(16, 48)";
      wanted[layer + "ffn.down.bias"] = "(16)";
      for (const std::string sublayer : {"attention.", "ffn."}) {
        for (const std::string& norm : norms) {
          for (const std::string leaf : {".weight", ".bias"}) wanted[layer + sublayer + norm + leaf] = "(16)";
        }
      }
    }
    if (placement == "pre" || placement == "sandwich") wanted["final_norm.weight"] = wanted["final_norm.bias"] = "(16)";
    INFO(placement);
    CHECK(parameters({"model.placement=" + placement, "model.norm=layernorm", "model.qk_norm=layernorm",
                      "model.activation=swiglu", "model.ffn_width=48", "model.kv_heads=1"}) == wanted);
  }
}

TEST_CASE("without biases, gains and learned positions their parameters are gone") {
  std::set<std::string> names;
  for (const auto& [name, shape] :
       parameters({"model.bias=false", "norm.affine=false", "model.position=none", "model.tie_embeddings=true"})) {
    names.insert(name.substr(name.rfind('.', name.size() - 8) + 1));
  }
  CHECK(names == std::set<std::string>{"token.weight", "q.weight", "k.weight", "v.weight", "out.weight", "up.weight",
                                       "down.weight"});
}

TEST_CASE("Pre-Norm and Sandwich end in one final norm, Post-Norm and DeepNorm in none, unless told otherwise") {
  CHECK(norms_of("pre") == 2 * 2 + 1);
  CHECK(norms_of("post") == 2 * 2);
  CHECK(norms_of("deepnorm") == 2 * 2);
  CHECK(norms_of("sandwich") == 4 * 2 + 1);
  CHECK(norms_of("none") == 0);
  CHECK(norms_of("pre", "off") == 2 * 2);
  CHECK(norms_of("post", "on") == 2 * 2 + 1);
  CHECK(norms_of("none", "on") == 1);
}
