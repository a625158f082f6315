// What placements make of a model: constants at the depths the papers name, what stands inside the branches, norms,
// learned weights and the final norm.
#include <cmath>
#include <functional>
#include <map>

#include "../model_probe.h"
#include "../small_run.h"
#include "core/text.h"

using namespace normlab;

namespace {

double constant(const char* placement, const char* option, int64_t layers) {
  return option_value({}, find_placement(placement)->options, option, layers);
}

// Logits of a small model without eps, after `change`.
std::vector<double> logits(const std::vector<std::string>& sets, const std::function<void(ModelProbe&)>& change = {}) {
  std::vector<std::string> all = {"model.bias=false", "norm.eps=0", "model.activation=relu"};
  all.insert(all.end(), sets.begin(), sets.end());
  ModelProbe probe(small_model(11, all), 1, 8);
  if (change) change(probe);
  return probe.logits({1, 5, 2, 9, 0, 3, 3, 7});
}

// Rows [first, last) of a matrix of width 16 times `factor`.
void scale_rows(ModelProbe& probe, const std::string& name, int first, int last, double factor) {
  real* w = probe.weight(name);
  for (int i = first * 16; i < last * 16; ++i) w[i] *= static_cast<real>(factor);
}

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  return most;
}

}  // namespace

TEST_CASE("the constants of the papers at named depths") {
  const auto near = [](const char* placement, const char* option, int64_t layers, double wanted) {
    INFO(placement << "." << option << " at " << layers);
    CHECK(std::abs(constant(placement, option, layers) - wanted) <= 5e-5);
  };
  near("subln", "gamma", 6, 1.5764);  // sqrt(ln 12)
  near("subln", "gamma", 100, 2.3018);
  near("admin", "omega", 6, 2.0170);  // M = 12
  near("admin", "omega", 100, 6.0746);
  near("tfixup", "beta", 6, 0.3689);  // 54^(-1/4)
  near("tfixup", "beta", 100, 0.1826);
  near("keel", "alpha", 32, 64);
  near("keel", "alpha", 512, 1024);
  near("mixln", "share", 12, 0.25);
  for (const auto& [layers, gamma] : {std::pair{12, 0.1}, {18, 0.1}, {19, 1e-5}, {24, 1e-5}, {25, 1e-6}, {48, 1e-6}})
    CHECK(constant("layerscale", "gamma", layers) == gamma);
}

TEST_CASE(
    "Sub-LN norms within both branches: the size of values and of hidden channels plays no part, that of q does") {
  const std::vector<double> plain = logits({"model.placement=subln"});
  CHECK(distance(logits({"model.placement=subln"},
                        [](ModelProbe& p) { scale_rows(p, "layers.0.attention.v.weight", 0, 16, 4); }),
                 plain) < 1e-5);
  CHECK(distance(
            logits({"model.placement=subln"}, [](ModelProbe& p) { scale_rows(p, "layers.1.ffn.up.weight", 0, 64, 4); }),
            plain) < 1e-5);
  CHECK(distance(logits({"model.placement=subln"},
                        [](ModelProbe& p) { scale_rows(p, "layers.0.attention.q.weight", 0, 16, 4); }),
                 plain) > 1e-3);
  // one norm over all heads, not one for each
  CHECK(distance(logits({"model.placement=subln"},
                        [](ModelProbe& p) { scale_rows(p, "layers.0.attention.v.weight", 0, 8, 4); }),
                 plain) > 1e-3);
}

TEST_CASE("NormFormer's factor on a head is that head's values times it") {
  const std::vector<std::string> sets = {"model.placement=normformer"};
  const std::vector<double> plain = logits(sets);
  const auto by_factor = logits(sets, [](ModelProbe& p) { p.set("layers.0.attention.head_scale", {1, 3}); });
  const auto by_values = logits(sets, [](ModelProbe& p) { scale_rows(p, "layers.0.attention.v.weight", 8, 16, 3); });
  CHECK(distance(by_factor, by_values) < 1e-5);
  CHECK(distance(by_factor, plain) > 1e-3);
  CHECK(distance(logits(sets, [](ModelProbe& p) { scale_rows(p, "layers.1.ffn.up.weight", 0, 64, 4); }), plain) < 1e-5);
}

TEST_CASE("HybridNorm norms each head's queries, keys and values, with one gain for all heads") {
  const std::vector<std::string> sets = {"model.placement=hybridnorm", "model.position=rope", "model.kv_heads=1"};
  const std::vector<double> plain = logits(sets);
  for (const auto& [name, rows] : {std::pair{"q", 8}, {"k", 8}, {"v", 8}}) {
    INFO(name);
    const std::string weight = str("layers.0.attention.", name, ".weight");
    CHECK(distance(logits(sets, [&, last = rows](ModelProbe& p) { scale_rows(p, weight, 0, last, 4); }), plain) < 1e-5);
  }
  // gain 2 of the values is twice what attention writes; gain 2 of the queries is what gain 2 of the keys is
  const std::vector<double> two(8, 2);
  const auto gained = [&](const std::string& norm) {
    return logits(sets, [&](ModelProbe& p) { p.set("layers.0.attention." + norm + ".weight", two); });
  };
  const auto written = logits(sets, [&](ModelProbe& p) { scale_rows(p, "layers.0.attention.out.weight", 0, 16, 2); });
  CHECK(distance(gained("norm_v"), written) < 1e-5);
  CHECK(distance(gained("norm_q"), gained("norm_k")) < 1e-5);
  CHECK(distance(gained("norm_q"), plain) > 1e-4);
}

TEST_CASE("every placement has the gains and learned weights of its formula, and its own rule for the final norm") {
  struct Row {
    bool final_norm;
    std::vector<std::string> sites;             // in every layer; "=" gives an initial value other than 1
    std::vector<std::string> others = {};       // once in the model
    std::vector<std::string> first_layer = {};  // instead of `sites` in layer 0
  };
  const std::vector<std::string> pre = {"attention.norm_in", "ffn.norm_in"},
                                 post = {"attention.norm_post", "ffn.norm_post"};
  const std::map<std::string, Row> table = {
      {"post", {false, post}},
      {"pre", {true, pre}},
      {"deepnorm", {false, post}},
      {"sandwich", {true, {"attention.norm_in", "attention.norm_out", "ffn.norm_in", "ffn.norm_out"}}},
      {"residual", {false, post, {"dual_norm"}}},
      {"subln", {true, {"attention.norm_in", "attention.norm_mid", "ffn.norm_in", "ffn.norm_mid"}}},
      {"reordered", {true, {"attention.norm_out", "ffn.norm_out"}}},
      {"lns", {true, pre}},
      {"scaled_pre", {true, pre}},
      {"layerscale", {true, {"attention.norm_in", "ffn.norm_in", "attention.gamma=0.1", "ffn.gamma=0.1"}}},
      {"rezero", {false, {"attention.alpha=0"}}},
      {"skipinit", {false, {"attention.alpha=0", "ffn.alpha=0"}}},
      {"normformer",
       {true, {"attention.norm_in", "attention.norm_out", "attention.head_scale", "ffn.norm_in", "ffn.norm_mid"}}},
      {"keel",
       {false,
        {"attention.norm_in", "attention.norm_post", "ffn.norm_in", "ffn.norm_post"},
        {},
        {"attention.norm_in", "ffn.norm_in", "ffn.norm_post"}}},
      {"b2t", {false, post}},
      {"mixln", {true, pre, {}, post}},
      {"hybridnorm", {true, {"attention.norm_q", "attention.norm_k", "attention.norm_v", "ffn.norm_in"}}},
      {"tfixup", {false, {}}},
      // M = 8: sqrt(9 / ln 9 - 1)
      {"admin", {false, {"attention.norm_post", "ffn.norm_post", "attention.omega=1.75957", "ffn.omega=1.75957"}}},
      {"none", {false, {}}},
  };
  for (const auto& [placement, row] : table) {
    INFO(placement);
    std::map<std::string, double> wanted;
    const auto want = [&](const std::string& site, const std::string& at) {
      const auto equals = site.find('=');
      const bool norm = site.find("norm") != std::string::npos;
      wanted[at + site.substr(0, equals) + (norm ? ".weight" : "")] =
          equals == std::string::npos ? 1 : std::stod(site.substr(equals + 1));
    };
    for (int layer = 0; layer < 4; ++layer) {
      const bool first = layer == 0 && !row.first_layer.empty();
      for (const std::string& site : first ? row.first_layer : row.sites) want(site, str("layers.", layer, "."));
    }
    for (const std::string& site : row.others) want(site, "");
    if (row.final_norm) want("final_norm", "");
    std::map<std::string, double> found;
    ModelProbe probe(small_model(11, {"model.placement=" + placement, "model.bias=false", "model.layers=4"}), 1, 8);
    for (int p = 0; p < probe.store().count(); ++p) {
      const ParamSpec& spec = probe.store().spec(p);
      if (spec.role != Role::vector) continue;
      INFO(spec.name);
      CHECK(spec.trainable);
      CHECK_FALSE(spec.decays());
      const real* values = probe.store().value(p);
      found[spec.name] = std::round(1e5 * static_cast<double>(values[0])) / 1e5;
      CHECK(std::all_of(values, values + spec.shape.count(), [&](real value) { return value == values[0]; }));
    }
    CHECK(found == wanted);
  }
}

TEST_CASE("a placement says truly whether it has norms") {
  for (const Placement* placement : all_placements()) {
    INFO(placement->name);
    ModelProbe probe(small_model(11, {str("model.placement=", placement->name), "model.final_norm=off"}), 1, 8);
    bool found = false;
    for (int p = 0; p < probe.store().count(); ++p)
      found = found || probe.store().spec(p).name.find("norm") != std::string::npos;
    CHECK(found == placement->has_norms);
  }
}

TEST_CASE("learned weights of a placement have the shapes of what they weigh") {
  const auto shape = [](const std::string& placement, const std::string& name) {
    return ModelProbe(small_model(11, {"model.placement=" + placement}), 1, 8).spec("layers.1." + name).shape;
  };
  CHECK(shape("rezero", "attention.alpha") == Shape{1});
  CHECK(shape("skipinit", "ffn.alpha") == Shape{1});
  CHECK(shape("layerscale", "ffn.gamma") == Shape{16});
  CHECK(shape("admin", "attention.omega") == Shape{16});
  CHECK(shape("normformer", "attention.head_scale") == Shape{2});
  CHECK(shape("subln", "attention.norm_mid.weight") == Shape{16});
  CHECK(shape("subln", "ffn.norm_mid.weight") == Shape{64});
  CHECK(shape("hybridnorm", "attention.norm_v.weight") == Shape{8});
}

TEST_CASE("a placement that uses a norm twice, or not exactly one branch, is refused where it happens") {
  const auto refusal = [](Stream (*sublayer)(Wire&, Stream, Branch&)) {
    Placement wrong = *find_placement("post");
    wrong.sublayer = sublayer;
    ModelConfig model = small_model(11);
    model.placement = &wrong;
    try {
      ModelProbe probe(model, 1, 8);
    } catch (const ShapeError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  CHECK(refusal([](Wire& w, Stream s, Branch& f) {
          return Stream{w.norm("norm_in", add(s.x, f(w.norm("norm_in", s.x)))), {}};
        }) == "layers.0.attention.norm_in: parameter layers.0.attention.norm_in.weight is used twice");
  CHECK(refusal([](Wire&, Stream s, Branch&) { return s; }) ==
        "layers.0.attention: placement 'post' calls the branch 0 times, not once");
}

TEST_CASE("a placement's factor on the first gain holds for a norm with one gain for all channels") {
  ModelProbe probe(small_model(11, {"model.placement=reordered", "placement.gain=0.5", "model.norm=scalenorm"}), 1, 8);
  REQUIRE(probe.spec("layers.0.attention.norm_out.weight").shape == Shape{1});
  CHECK(probe.weight("layers.0.attention.norm_out.weight")[0] == real(0.5 * 4));  // sqrt(C) = 4
}

TEST_CASE("a factor on the first gain of a norm without gain is refused") {
  const auto message = [](const std::vector<std::string>& settings) -> std::string {
    std::vector<std::string> all = {"model.placement=reordered", "placement.gain=0"};
    all.insert(all.end(), settings.begin(), settings.end());
    try {
      small_model(11, all);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string start = "layers.0.attention.norm_out: a gain that starts at 0 times the usual needs ";
  CHECK(message({"norm.affine=false"}) ==
        "small.toml:9:1: " + start +
            "norm.affine = true ('model.norm' is 'rmsnorm', 'model.placement' is 'reordered')");
  CHECK(message({"model.norm=adanorm"}) ==
        "--set model.norm: " + start +
            "a norm with a gain, which 'adanorm' has not ('model.norm' is 'adanorm', "
            "'model.placement' is 'reordered')");
}
