// A 2-layer decoder under every norm and placement against PyTorch: tests/fixtures/models.txt, by
// tests/parity/make_fixtures.py.
#include <memory>

#include "fixture.h"
#include "train/run_config.h"

using namespace normlab;

namespace {

// What the fixture's variants start from; BASE in make_fixtures.py.
constexpr const char* kBase =
    "model.layers = 2\nmodel.width = 16\nmodel.heads = 2\nmodel.ffn_width = 32\nmodel.context = 8\nmodel.norm = "
    "\"layernorm\"\n"
    "model.placement = \"pre\"\ntrain.lr = 5e-3\ntrain.batch = 4\ntrain.steps = 20\n";
constexpr int64_t kVocabulary = 11;
constexpr double kTolerance = 1e-5;  // relative, the contract's for losses in fp32

double relative(double actual, double expected) { return std::abs(actual - expected) / std::abs(expected); }

// Trains one variant on the fixture's weights and batches.
class Training {
 public:
  Training(const Fixture& fixture, const std::string& settings)
      : fixture_(fixture),
        config_(resolve(parse_config(kBase, "kBase", split(settings, ';')).settings)),
        graph_(store_, {config_.batch, config_.context}) {
    build_decoder(graph_, model_config(config_, kVocabulary));
    graph_.plan(Plan::training);
    store_.allocate();
    store_.initialize(1);  // running statistics; all else is overwritten
    for (int p = 0; p < store_.count(); ++p) {
      if (!store_.spec(p).trainable) continue;
      const std::vector<double>& values = fixture.at("weight;" + store_.spec(p).name).values;
      const auto count = static_cast<std::size_t>(store_.spec(p).shape.count());
      REQUIRE(values.size() >= count);  // fewer kv heads take the first rows
      for (std::size_t i = 0; i < count; ++i) store_.value(p)[i] = static_cast<real>(values[i]);
    }
    graph_.allocate_shared();
    graph_.prepare();
    work_ = std::make_unique<Workspace>(graph_);
    const TrainConfig train = train_config(config_);
    optimizer_ = std::make_unique<Optimizer>(store_, *train.optimizer, train.optimizer_config);
  }

  // Mean loss of the batch of `update`, from 0; the gradients stay in gradient().
  double pass(int64_t update, bool training) {
    const auto positions = static_cast<std::size_t>(config_.batch * config_.context);
    std::vector<int32_t> tokens, targets;
    double valid = 0;
    for (std::size_t i = 0; i < positions; ++i) {
      const std::size_t at = static_cast<std::size_t>(update) * positions + i;
      tokens.push_back(static_cast<int32_t>(fixture_.at("tokens").values.at(at)));
      targets.push_back(static_cast<int32_t>(fixture_.at("targets").values.at(at)));
      valid += targets.back() >= 0 ? 1 : 0;
    }
    Pass pass;
    pass.training = training;
    pass.tokens = tokens.data();
    pass.targets = targets.data();
    pass.loss_scale = 1 / valid;
    graph_.forward(*work_, pass);
    if (training) graph_.backward(*work_, pass);
    return static_cast<double>(graph_.loss(*work_)) / valid;
  }
  void step(int64_t update) {
    optimizer_->step(work_->gradients(), config_.lr, 1, update + 1);
    graph_.prepare();
  }

  int64_t steps() const { return config_.steps; }
  double gradient_norm() { return optimizer_->combine({work_->gradients()}); }
  const real* gradient(const std::string& name) { return work_->gradient(store_.find(name)); }

 private:
  const Fixture& fixture_;
  RunConfig config_;
  ParamStore store_;
  Graph graph_;
  std::unique_ptr<Workspace> work_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace

TEST_CASE("Twenty updates lose what PyTorch loses, under every norm, placement and model option", "[threads]") {
  const Fixture f("models.txt");
  const std::vector<std::string> variants = f.names("losses;");
  REQUIRE(variants.size() >= 49);  // 6 norms under 5 placements, 19 options
  REQUIRE(f.names("evaluation;").size() >= 44);
  for (const std::string& variant : variants) {
    INFO(variant);
    Training training(f, variant);
    const std::vector<double>& losses = f.at("losses;" + variant).values;
    REQUIRE(static_cast<int64_t>(losses.size()) == training.steps());
    for (int64_t update = 0; update < training.steps(); ++update) {
      INFO("update " << update + 1);
      CHECK(relative(training.pass(update, true), losses[static_cast<std::size_t>(update)]) <= kTolerance);
      if (update == 0)
        CHECK(relative(training.gradient_norm(), f.at("gradient_norm;" + variant).values[0]) <= kTolerance);
      training.step(update);
    }
    // Evaluation after training: running statistics where the norm keeps them. make_fixtures.py says where it has no
    // value.
    if (f.has("evaluation;" + variant))
      CHECK(relative(training.pass(0, false), f.at("evaluation;" + variant).values[0]) <= kTolerance);
  }
}

TEST_CASE("First gradients of a whole model agree with PyTorch under every placement", "[threads]") {
  const Fixture f("models.txt");
  const std::vector<std::string> names = f.names("gradient;");
  REQUIRE(names.size() >= 30);  // 3 tensors, LayerNorm and RMSNorm under 5 placements
  for (const std::string& name : names) {
    INFO(name);
    const std::size_t cut = name.rfind(';');
    Training training(f, name.substr(0, cut));
    training.pass(0, true);
    const FixtureTensor& expected = f.at("gradient;" + name);
    const real* gradient = training.gradient(name.substr(cut + 1));
    for (std::size_t i = 0; i < expected.values.size(); ++i) {
      CHECK(std::abs(static_cast<double>(gradient[i]) - expected.values[i]) <= kTolerance * expected.largest());
    }
  }
}
