// Norms, attention, activations, cross entropy, optimizers and schedules against PyTorch: tests/fixtures, by
// tests/parity/make_fixtures.py.
#include <functional>
#include <memory>
#include <utility>

#include "fixture.h"
#include "normlab/norm.h"
#include "normlab/ops.h"
#include "train/optimizer.h"
#include "train/schedule.h"

using namespace normlab;

namespace {

// One fp32 rounding moves a number by at most 2^-24 of itself. A chain of r roundings on numbers no larger than the
// largest expected value is then off by at most r of these; where intermediate values are larger than the result
// (differences in backward passes), r counts them as often. Expected values are float64, their inputs are fp32 exactly.
constexpr double kRounding = 1.0 / (1 << 24);

// loss = sum of cotangent * x: makes a scalar of any (B, T, C), so that its gradient at x is the cotangent.
class Project final : public Op {
 public:
  explicit Project(std::vector<double> cotangent) : cotangent_(std::move(cotangent)) {}
  std::string_view name() const override { return "project"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override { *c.out().data = 0; }
  void backward(const OpContext& c) const override {
    const Gradient dx = c.grad(0);
    for (int64_t r = 0, at = 0; r < dx.view.rows; ++r) {
      for (int64_t j = 0; j < dx.view.cols; ++j, ++at) {
        real& to = dx.view.row(r)[j];
        to = (dx.accumulate ? to : real(0)) + static_cast<real>(cotangent_[static_cast<std::size_t>(at)]);
      }
    }
  }

 private:
  std::vector<double> cotangent_;
};

// One recorded function with its inputs as parameters.
class Case {
 public:
  // `inputs`: parameter name and its name in the fixture. `build` makes the result from the graph, declaring those
  // parameters.
  Case(const Fixture& fixture, std::string name, const std::vector<std::pair<std::string, std::string>>& inputs,
       const std::function<Var(Graph&)>& build)
      : fixture_(fixture), name_(std::move(name)), inputs_(inputs) {
    const auto& shape = at(inputs[0].second).shape;
    graph_ = std::make_unique<Graph>(store_, Graph::Sizes{shape[0], shape[1]});
    y_ = build(*graph_);
    graph_->keep(y_);
    graph_->set_loss(graph_->append(std::make_unique<Project>(at("cotangent").values), {y_}, {1}));
    graph_->plan(Plan::training);
    store_.allocate();
    store_.initialize(1);
    graph_->allocate_shared();
    work_ = std::make_unique<Workspace>(*graph_);
    work_->poison();
    targets_.assign(static_cast<std::size_t>(shape[0] * shape[1]), 0);
  }

  ParamStore& store() { return store_; }
  std::vector<int32_t>& targets() { return targets_; }

  void run(bool training = true) {
    for (const auto& [param, input] : inputs_) set(param, at(input));
    graph_->prepare();
    Pass pass;
    pass.training = training;
    pass.targets = targets_.data();
    graph_->forward(*work_, pass);
    graph_->backward(*work_, pass);
  }
  void set(const std::string& param, const FixtureTensor& values) {
    const int p = find(param, values);
    for (std::size_t i = 0; i < values.values.size(); ++i) store_.value(p)[i] = static_cast<real>(values.values[i]);
  }

  // Compares the output and the gradient of every input. Rows of ignored positions have no meaning in a masked case.
  // `scale` is the size of the numbers that are rounded: 0 = the largest expected one, else the larger of it and of the
  // expected one of each element.
  void check(double forward_roundings, double backward_roundings, double scale = 0) {
    const ConstView y = graph_->value(*work_, y_);
    std::vector<double> output;
    for (int64_t r = 0; r < y.rows; ++r) {
      for (int64_t j = 0; j < y.cols; ++j) {
        const bool counts =
            y.rows != static_cast<int64_t>(targets_.size()) || targets_[static_cast<std::size_t>(r)] >= 0;
        output.push_back(counts ? static_cast<double>(y.row(r)[j]) : 0.0);
      }
    }
    compare("y", output, at("y"), forward_roundings, scale);
    for (const auto& [param, input] : inputs_) {
      const FixtureTensor& expected = at("d" + input);
      const real* gradient = work_->gradient(find(param, expected));
      compare("d" + input, std::vector<double>(gradient, gradient + expected.values.size()), expected,
              backward_roundings, scale);
    }
  }
  void check_state(const std::string& param, const std::string& expected, double roundings) {
    const real* values = store_.value(find(param, at(expected)));
    compare(expected, std::vector<double>(values, values + at(expected).values.size()), at(expected), roundings);
  }

 private:
  const FixtureTensor& at(const std::string& tensor) const { return fixture_.at(str(name_, ".", tensor)); }

  int find(const std::string& param, const FixtureTensor& values) const {
    const int p = store_.find(param);
    if (p < 0) FAIL(name_ << ": no parameter " << param);
    REQUIRE(store_.spec(p).shape.count() == static_cast<int64_t>(values.values.size()));
    return p;
  }

  void compare(const std::string& what, const std::vector<double>& actual, const FixtureTensor& expected,
               double roundings, double scale = 0) const {
    REQUIRE(actual.size() == expected.values.size());
    double worst = 0;
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double of = scale > 0 ? std::max(scale, std::abs(expected.values[i])) : expected.largest();
      const double off = std::abs(actual[i] - expected.values[i]) / (of * kRounding);
      if (!(off <= worst)) worst = off;  // a NaN is the worst of all
    }
    INFO(name_ << "." << what << ": off by " << worst << " roundings");
    CHECK(worst <= roundings);
  }

  const Fixture& fixture_;
  std::string name_;
  std::vector<std::pair<std::string, std::string>> inputs_;
  ParamStore store_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Workspace> work_;
  std::vector<int32_t> targets_;
  Var y_;
};

// A parameter that stands for an activation.
Var input(Graph& g, const std::string& name, const FixtureTensor& like) {
  ParamSpec spec;
  spec.name = name;
  spec.shape = {like.shape[0], like.shape[1], like.shape[2]};
  return affine(g.param(spec), 1, 0);
}

Case norm_case(const Fixture& f, const std::string& name, const std::string& norm, bool fused = true) {
  const NormDef* def = find_norm(norm);
  std::vector<std::pair<std::string, std::string>> inputs = {{"x", "x"}, {"norm.weight", "gain"}};
  if (f.has(name + ".bias")) inputs.emplace_back("norm.bias", "bias");
  return Case(f, name, inputs, [&](Graph& g) {
    const NormChoice choice{def, def->default_eps, true, fused, false, {}};
    return apply_norm(g, choice, "norm", input(g, "x", f.at(name + ".x")));
  });
}

// Forward, at most 8 roundings: mean, difference (2), root, quotient, gain, bias and their stored parts. Backward: sums
// of 15 rows or of 12 channels, and differences of terms a few times larger than the result.
constexpr double kForward = 8, kBackward = 32;

}  // namespace

TEST_CASE("Per-token norms and their gradients agree with PyTorch, fused and by definition", "[threads]") {
  const Fixture f("norms.txt");
  for (const char* norm : {"layernorm", "rmsnorm", "groupnorm"}) {
    for (const bool fused : {true, false}) {
      INFO((fused ? "fused" : "by definition"));
      Case c = norm_case(f, norm, norm, fused);
      c.run();
      c.check(kForward, kBackward);
    }
  }
}

TEST_CASE("InstanceNorm and its gradients agree with PyTorch, with and without ignored positions", "[threads]") {
  const Fixture f("norms.txt");
  Case plain = norm_case(f, "instancenorm", "instancenorm");
  plain.run();
  plain.check(kForward, kBackward);

  Case masked = norm_case(f, "instancenorm_masked", "instancenorm");
  for (std::size_t i = 0; i < masked.targets().size(); ++i) masked.targets()[i] = f.at("mask").values[i] != 0 ? 0 : -1;
  masked.run();
  masked.check(kForward, kBackward);
}

TEST_CASE("BatchNorm trains, keeps running statistics and evaluates by them as PyTorch does", "[threads]") {
  const Fixture f("norms.txt");
  Case training = norm_case(f, "batchnorm", "batchnorm");
  training.run();
  training.check(kForward, kBackward);
  training.check_state("norm.running_mean", "running_mean", kForward);
  training.check_state("norm.running_var", "running_var", kForward);

  Case evaluation = norm_case(f, "batchnorm_eval", "batchnorm");
  evaluation.set("norm.running_mean", f.at("batchnorm.running_mean"));
  evaluation.set("norm.running_var", f.at("batchnorm.running_var"));
  evaluation.run(false);
  evaluation.check(kForward, kBackward);

  Case masked = norm_case(f, "batchnorm_masked", "batchnorm");
  masked.set("norm.running_mean", f.at("batchnorm.running_mean"));
  masked.set("norm.running_var", f.at("batchnorm.running_var"));
  for (std::size_t i = 0; i < masked.targets().size(); ++i) masked.targets()[i] = f.at("mask").values[i] != 0 ? 0 : -1;
  masked.run();
  masked.check(kForward, kBackward);
  masked.check_state("norm.running_mean", "running_mean", kForward);
  masked.check_state("norm.running_var", "running_var", kForward);
}

TEST_CASE("Causal attention with grouped key heads and its gradients agree with PyTorch", "[threads]") {
  const Fixture f("ops.txt");
  Case c(f, "attention", {{"q", "q"}, {"k", "k"}, {"v", "v"}}, [&](Graph& g) {
    return attention(input(g, "q", f.at("attention.q")), input(g, "k", f.at("attention.k")),
                     input(g, "v", f.at("attention.v")), 4, 2);
  });
  c.run();
  c.check(16, 32);  // dot products of 3, softmax over 7 (exp, sum, quotient), sum of 7
}

TEST_CASE("Rotary positions and their gradients agree with PyTorch") {
  const Fixture f("ops.txt");
  Case c(f, "rope", {{"x", "x"}}, [&](Graph& g) { return rope(input(g, "x", f.at("rope.x")), 3); });
  c.run();
  c.check(4, 4);
}

TEST_CASE("GELU, its tanh form and SiLU and their gradients agree with PyTorch") {
  const Fixture f("ops.txt");
  const std::pair<const char*, Activation> functions[] = {
      {"gelu", Activation::gelu}, {"gelu_tanh", Activation::gelu_tanh}, {"silu", Activation::silu}};
  for (const auto& [name, function] : functions) {
    const std::string x = std::string(name) + ".x";
    Case c(f, name, {{"x", "x"}}, [&, kind = function](Graph& g) { return activation(input(g, "x", f.at(x)), kind); });
    c.run();
    c.check(4, 12, 1);  // slopes are within 3 roundings of 1, times cotangents below 4
  }
}

TEST_CASE("Cross entropy leaves ignored targets out as PyTorch does") {
  const Fixture f("ops.txt");
  const FixtureTensor& logits = f.at("cross_entropy.logits");
  ParamStore store;
  Graph graph(store, {logits.shape[0], logits.shape[1]});
  graph.set_loss(cross_entropy(input(graph, "logits", logits)));
  graph.plan(Plan::training);
  store.allocate();
  for (std::size_t i = 0; i < logits.values.size(); ++i) store.value(0)[i] = static_cast<real>(logits.values[i]);
  Workspace work(graph);
  std::vector<int32_t> targets;
  double valid = 0;
  for (const double target : f.at("cross_entropy.targets").values) {
    targets.push_back(static_cast<int32_t>(target));
    valid += target >= 0 ? 1 : 0;
  }
  Pass pass;
  pass.targets = targets.data();
  pass.loss_scale = 1 / valid;
  graph.forward(work, pass);
  graph.backward(work, pass);
  const double expected = f.at("cross_entropy.loss").values[0];
  CHECK(std::abs(static_cast<double>(graph.loss(work)) / valid - expected) <= 4 * kRounding * expected);
  const FixtureTensor& slopes = f.at("cross_entropy.dlogits");
  for (std::size_t i = 0; i < slopes.values.size(); ++i) {
    // exp(z - log sum) carries the rounding of its argument, up to |z| + log sum < 16.
    CHECK(std::abs(static_cast<double>(work.gradient(0)[i]) - slopes.values[i]) <= 16 * kRounding * slopes.largest());
  }
}

TEST_CASE("Ten updates of Adam, AdamW and SGD agree with PyTorch") {
  const Fixture f("optimizers.txt");
  struct Setting {
    const char *name, *optimizer;
    OptimizerConfig config;
  };
  for (const Setting& s :
       {Setting{"adam", "adam", {0.8, 0.95, 1e-6, 0, 0}}, Setting{"adamw", "adamw", {0.8, 0.95, 1e-6, 0, 0.5}},
        Setting{"sgd", "sgd", {}}, Setting{"sgd_momentum", "sgd", {0.9, 0.999, 1e-8, 0.9, 0}},
        Setting{"sgd_decay", "sgd", {0.9, 0.999, 1e-8, 0.5, 0.5}}}) {
    ParamStore store;
    ParamSpec matrix, vector;
    matrix.name = "matrix", matrix.shape = {3, 5}, matrix.role = Role::query;
    vector.name = "vector", vector.shape = {4};
    store.declare(matrix);
    store.declare(vector);
    store.allocate();
    Optimizer optimizer(store, *find_optimizer(s.optimizer), s.config);
    Slab gradient(store.total());
    const auto fill = [&](int p, real* to, const std::string& from, std::size_t first) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(store.spec(p).shape.count()); ++i) {
        to[i] = static_cast<real>(f.at(from).values[first + i]);
      }
    };
    fill(0, store.value(0), "matrix", 0);
    fill(1, store.value(1), "vector", 0);
    const std::vector<double>& rates = f.at("rates").values;
    for (std::size_t update = 0; update < rates.size(); ++update) {
      fill(0, gradient.data() + store.offset(0), "matrix_gradients", update * 15);
      fill(1, gradient.data() + store.offset(1), "vector_gradients", update * 4);
      optimizer.step(gradient.data(), rates[update], 1, static_cast<int64_t>(update) + 1);
    }
    for (int p = 0; p < store.count(); ++p) {
      const FixtureTensor& expected = f.at(str(s.name, ".", store.spec(p).name));
      for (std::size_t i = 0; i < expected.values.size(); ++i) {
        INFO(s.name << " " << store.spec(p).name << " " << i);
        // The first values' own rounding, and per update one of the sum (half a unit each, so 2^-24), one of the decay
        // and a little of the step.
        CHECK(std::abs(static_cast<double>(store.value(p)[i]) - expected.values[i]) <=
              25 * kRounding * std::max(1.0, std::abs(expected.values[i])));
      }
    }
  }
}

TEST_CASE("Learning rates of every update agree with PyTorch's schedulers") {
  const Fixture f("schedules.txt");
  const std::vector<std::string> names = f.names("");
  REQUIRE(names.size() == 10);  // 5 schedules, with and without warmup
  for (const std::string& name : names) {
    const std::size_t cut = name.find(';');
    const ScheduleDef* schedule = find_schedule(name.substr(0, cut));
    REQUIRE(schedule != nullptr);
    const std::vector<double>& expected = f.at(name).values;
    const ScheduleConfig config{0.3, 0.03, parse_int(name.substr(cut + 1)).value(),
                                static_cast<int64_t>(expected.size())};
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO(name << ", update " << i + 1);
      // PyTorch's recursions round once or twice per update, in double.
      CHECK(std::abs(learning_rate(*schedule, config, static_cast<int64_t>(i) + 1) - expected[i]) <=
            1e-13 * expected[i]);
    }
  }
}
