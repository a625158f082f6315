// Every init under every placement: which distribution each parameter is drawn from, and that it is.
#include <cmath>
#include <map>

#include "../model_probe.h"
#include "../process.h"
#include "../small_run.h"
#include "core/text.h"

using namespace normlab;

namespace {

using Fill = ParamSpec::Fill;

constexpr double kLayers = 3, kWidth = 64, kFfn = 192, kVocabulary = 100, kKeys = 32;

// What is known of a matrix, or of the bias beside it, from its name alone.
struct Matrix {
  std::string leaf;  // "q", "up", "token"
  double layer, in, out;
  bool embedding, writes, value_path;
};

Matrix matrix_of(const std::string& name) {
  const auto parts = split(name, '.');
  Matrix m{};
  m.leaf = parts[parts.size() == 2 ? 0 : parts.size() - 2];
  m.layer = parts[0] == "layers" ? std::stod(std::string(parts[1])) : -1;
  const auto is = [&](std::initializer_list<const char*> leaves) {
    return std::any_of(leaves.begin(), leaves.end(), [&](const char* leaf) { return m.leaf == leaf; });
  };
  m.in = is({"down"}) ? kFfn : kWidth;
  m.out = is({"k", "v"}) ? kKeys : is({"up", "gate"}) ? kFfn : is({"head"}) ? kVocabulary : kWidth;
  m.embedding = is({"token", "position"});
  m.writes = is({"out", "down"});
  m.value_path = is({"v", "out", "up", "gate", "down"});
  return m;
}

double density(double z) { return std::exp(-z * z / 2) / std::sqrt(2 * 3.14159265358979323846); }

// Second and fourth moment of a standard normal variable that is cut at +- 3, by partial integration.
const double kInside = std::erf(3 / std::sqrt(2.0)), kSecond = 1 - 2 * 3 * density(3) / kInside,
             kFourth = 3 * kSecond - 2 * 27 * density(3) / kInside;

struct Wanted {
  Fill fill;
  double std, bound;  // infinite for a normal distribution
};
Wanted normal(double std) { return {Fill::normal, std, INFINITY}; }
Wanted uniform(double bound) { return {Fill::uniform, bound / std::sqrt(3.0), bound}; }
Wanted truncated(double whole) { return {Fill::truncated, std::sqrt(kSecond) * whole, 3 * whole}; }

Wanted xavier(const Matrix& m) { return normal(m.embedding ? 1 / std::sqrt(kWidth) : std::sqrt(2 / (m.in + m.out))); }
Wanted xavier_uniform(const Matrix& m) {
  return m.embedding ? normal(1 / std::sqrt(kWidth)) : uniform(std::sqrt(6 / (m.in + m.out)));
}
Wanted times(double factor, Wanted w) { return {w.fill, factor * w.std, factor * w.bound}; }
Wanted deepnorm(const Matrix& m) { return times(m.value_path ? std::pow(8 * kLayers, -0.25) : 1, xavier(m)); }
Wanted subln(const Matrix& m) { return times(m.value_path ? std::sqrt(std::log(2 * kLayers)) : 1, xavier(m)); }
Wanted tfixup(const Matrix& m) {
  return times(m.value_path || m.embedding ? std::pow(9 * kLayers, -0.25) : 1, xavier(m));
}

// The papers' statements for 3 layers.
Wanted wanted_of(std::string_view init, std::string_view placement, const Matrix& m) {
  if (init == "auto") init = placement;
  if (init == "deepnorm") return deepnorm(m);
  if (init == "subln") return subln(m);
  if (init == "tfixup") return tfixup(m);
  if (init == "gpt2") return normal(m.writes ? 0.02 / std::sqrt(2 * kLayers) : 0.02);
  if (init == "normal") return normal(0.02);
  if (init == "small") return normal(m.embedding ? 1 / std::sqrt(kWidth) : std::sqrt(2 / (5 * kWidth)));
  if (init == "xavier_uniform") return xavier_uniform(m);
  if (init == "ds_init") return times(m.layer < 0 ? 1 : 1 / std::sqrt(m.layer + 1), xavier_uniform(m));
  if (init == "torch") return m.embedding ? normal(1) : uniform(1 / std::sqrt(m.in));
  if (init == "mitchell") return truncated(1 / std::sqrt(m.writes ? 2 * m.in * (m.layer + 1) : m.in));
  return xavier(m);  // that, and "auto" under all other placements
}

// Fourth moment over the square of the second.
double kurtosis(Fill fill) {
  return fill == Fill::uniform ? 9.0 / 5 : fill == Fill::truncated ? kFourth / (kSecond * kSecond) : 3;
}

struct Drawn {
  double std = 0, most = 0;
};
Drawn drawn(const ParamStore& store, int p) {
  const real* values = store.value(p);
  const int64_t n = store.spec(p).shape.count();
  Drawn d;
  for (int64_t i = 0; i < n; ++i) {
    const auto x = static_cast<double>(values[i]);
    d.std += x * x / static_cast<double>(n);
    d.most = std::max(d.most, std::abs(x));
  }
  d.std = std::sqrt(d.std);
  return d;
}

ModelConfig model_of(std::string_view placement, std::string_view init) {
  return small_model(100, {"model.layers=3", "model.width=64", "model.heads=4", "model.kv_heads=2",
                           "model.ffn_width=192", "model.context=32", "model.activation=swiglu", "model.norm=layernorm",
                           str("model.placement=", placement), str("model.init=", init)});
}

std::vector<real> values_of(const std::vector<std::string>& sets) {
  ModelProbe probe(small_model(11, sets), 1, 8);
  std::vector<real> out;
  for (int p = 0; p < probe.store().count(); ++p) {
    const real* first = probe.store().value(p);
    out.insert(out.end(), first, first + probe.store().spec(p).shape.count());
  }
  return out;
}

}  // namespace

TEST_CASE("every matrix, and every bias that is, is drawn from the distribution of its init and placement") {
  for (const Placement* placement : all_placements()) {
    for (const InitDef* init : all_inits()) {
      ModelProbe probe(model_of(placement->name, init->name), 1, 32);
      std::map<Fill, double> farthest;  // share of the bound
      for (int p = 0; p < probe.store().count(); ++p) {
        const ParamSpec& spec = probe.store().spec(p);
        INFO(placement->name << ", " << init->name << ", " << spec.name);
        const Drawn d = drawn(probe.store(), p);
        if (spec.role == Role::vector) {
          const bool bias = spec.name.ends_with(".bias"), of_norm = spec.name.find("norm") != std::string::npos;
          if (bias && (of_norm || init->name != "torch")) CHECK(d.most == 0);
          if (!bias || of_norm || init->name != "torch") {
            CHECK(spec.fill == Fill::constant);
            continue;
          }
        }
        const Wanted w = wanted_of(init->name, placement->name, matrix_of(spec.name));
        CHECK(spec.fill == w.fill);
        CHECK(spec.std == Approx(w.std).epsilon(1e-12));
        // The mean of n squares has a relative standard error of sqrt((kurtosis - 1) / n), its root half of that.
        const double error = std::sqrt((kurtosis(w.fill) - 1) / static_cast<double>(spec.shape.count())) / 2;
        CHECK(std::abs(d.std / w.std - 1) < 4.5 * error);
        CHECK(d.most <= w.bound * (1 + 1e-7));  // a float's rounding
        farthest[w.fill] = std::max(farthest[w.fill], d.most / w.bound);
      }
      // Thousands of draws come near the bound: of 60000 of them one of 1000 lies in the last 1 % of a normal
      // distribution that is cut at 3, every hundredth in that of a uniform one.
      for (const auto& [fill, share] : farthest)
        if (fill != Fill::normal) CHECK(share > 0.99);
    }
  }
}

TEST_CASE("an init applies its gain under any placement, and is auto under the one it comes from") {
  for (const std::string name : {"deepnorm", "subln", "tfixup"}) {
    INFO(name);
    const std::string placement = "model.placement=" + name, init = "model.init=" + name;
    const std::string option = name == "subln" ? "placement.gamma=0.4" : "placement.beta=0.4";
    CHECK((values_of({placement, init}) == values_of({placement})));
    CHECK((values_of({placement, init, option}) == values_of({placement, option})));
    CHECK((values_of({placement, option}) != values_of({placement})));
    CHECK(model_warnings(small_model(11, {placement, init})).empty());
    CHECK(model_warnings(small_model(11, {"model.placement=pre", init})).empty());
    CHECK(model_warnings(small_model(11, {placement, "model.init=mitchell"})).size() == 1);
    // Matrices of the same name and shape draw the same numbers under a placement without any gain of its own.
    ModelProbe own(small_model(11, {placement}), 1, 8), other(small_model(11, {"model.placement=post", init}), 1, 8);
    for (const std::string weight : {"embedding.token.weight", "layers.1.attention.q.weight",
                                     "layers.1.attention.v.weight", "layers.0.ffn.down.weight", "head.weight"}) {
      INFO(weight);
      CHECK(std::equal(own.weight(weight), own.weight(weight) + own.spec(weight).shape.count(), other.weight(weight)));
    }
  }
  CHECK(model_warnings(small_model(11, {"model.placement=deepnorm", "model.init=subln"})).size() == 1);
}

TEST_CASE("check tells kind and standard deviation of everything that an init draws") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun);
  for (const InitDef* init : all_inits()) {
    const std::string set = str("model.init=", init->name);
    const std::string out = run_tool({"check", config, "--set", set}).out;
    INFO(out);
    ParamStore store;
    Graph graph(store, {1, 8});
    build_decoder(graph, small_model(70, {set}));  // 70 characters in the stories
    int64_t drawn = 0, told = 0;
    for (int p = 0; p < store.count(); ++p) {
      const ParamSpec& spec = store.spec(p);
      if (spec.fill == Fill::constant) continue;
      ++drawn;
      const std::map<Fill, std::string> kinds = {
          {Fill::normal, "normal"}, {Fill::uniform, "uniform"}, {Fill::truncated, "truncated normal"}};
      const std::string label = spec.role == Role::vector ? "bias" : role_name(spec.role);
      bool found = false;
      for (const auto& line : split(out, '\n')) {
        const std::string text(line);
        found = found || (text.rfind("#   " + label + " ", 0) == 0 &&
                          text.find(" x " + spec.shape.text() + " ") != std::string::npos &&
                          text.ends_with(str(" ", kinds.at(spec.fill), ", std ", fixed(spec.std, 6))));
      }
      INFO(spec.name);
      CHECK(found);
    }
    for (const auto& line : split(out, '\n')) {
      const std::string text(line);
      if (text.rfind("#   ", 0) == 0 && text.find(", std ") != std::string::npos)
        told += std::stoll(text.substr(text.find_last_of(' ', text.find(" x ") - 1)));
    }
    CHECK(told == drawn);
    CHECK(out.find(str("# init            ", init->formula, "\n")) != std::string::npos);
  }
}
