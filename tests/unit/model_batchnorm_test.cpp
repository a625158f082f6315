// BatchNorm over batch and time: outputs, running statistics, evaluation, padding.
#include <algorithm>
#include <cmath>

#include "../small_run.h"
#include "../test.h"
#include "data/batches.h"
#include "normlab/norm.h"
#include "train/trainer.h"

using namespace normlab;

namespace {

// BatchNorm of one channel, over `n` positions.
class OneChannel {
 public:
  explicit OneChannel(int64_t n, bool masked = true) : graph_(store_, {1, n}), targets_(static_cast<std::size_t>(n)) {
    choice_.def = find_norm("batchnorm");
    choice_.eps = 1e-5;
    choice_.options["masked"] = masked ? 1 : 0;
    ParamSpec x;
    x.name = "x";
    x.shape = {1, n, 1};
    y_ = apply_norm(graph_, choice_, "norm", graph_.param(x));
    graph_.keep(y_);
    graph_.plan(Plan::inference);
    store_.allocate();
    store_.initialize(1);
    graph_.prepare();
  }
  std::vector<double> operator()(const std::vector<double>& x, bool training,
                                 const std::vector<int32_t>& targets = {}) {
    for (std::size_t i = 0; i < x.size(); ++i) store_.value(store_.find("x"))[i] = static_cast<real>(x[i]);
    if (!targets.empty()) targets_ = targets;
    Pass pass;
    pass.training = training;
    pass.targets = targets_.data();
    Workspace work(graph_, false);
    graph_.forward(work, pass);
    std::vector<double> out;
    for (std::size_t i = 0; i < x.size(); ++i)
      out.push_back(static_cast<double>(graph_.value(work, y_).row(static_cast<int64_t>(i))[0]));
    return out;
  }
  double running_mean() { return static_cast<double>(*store_.value(store_.find("norm.running_mean"))); }
  double running_var() { return static_cast<double>(*store_.value(store_.find("norm.running_var"))); }

 private:
  ParamStore store_;
  Graph graph_;
  NormChoice choice_;
  Var y_;
  std::vector<int32_t> targets_;
};

void check_normed(const std::vector<double>& y) {
  const std::vector<double> wanted = {-1.34164, -0.44721, 0.44721, 1.34164};
  for (std::size_t i = 0; i < 4; ++i) CHECK(y[i] == Approx(wanted[i]).epsilon(1e-4));
}

SourceText ramp() {
  SourceText text;
  for (int i = 0; i < 200; ++i) text.tokens.push_back(static_cast<uint16_t>(i % 10));
  text.vocabulary = 10;
  text.units = Units::numbers;
  return text;
}

}  // namespace

TEST_CASE("BatchNorm uses the biased variance and keeps the unbiased one, momentum weighing the new value") {
  OneChannel norm(4);
  check_normed(norm({1, 2, 3, 4}, true));
  CHECK(norm.running_mean() == Approx(0.25));
  CHECK(norm.running_var() == Approx(1.066667));  // 0.9 + 0.1 5/3
  // Evaluation uses and does not move them.
  const std::vector<double> y = norm({1, 1, 1, 9}, false);
  CHECK(y[0] == Approx(0.72618).epsilon(1e-4));  // 0.75 / sqrt(1.066667 + 1e-5)
  CHECK(y[3] == Approx(8.75 / std::sqrt(1.066677)).epsilon(1e-4));
  CHECK(norm.running_mean() == Approx(0.25));
  CHECK(norm.running_var() == Approx(1.066667));
}

TEST_CASE("padded positions stay out of BatchNorm's statistics where it is masked", "[threads]") {
  OneChannel masked(6), plain(6, false);
  const std::vector<int32_t> targets = {0, -1, 0, 0, 0, -1};
  const std::vector<double> y = masked({1, 1000, 2, 3, 4, -70}, true, targets);
  check_normed({y[0], y[2], y[3], y[4]});
  CHECK(masked.running_mean() == Approx(0.25));
  CHECK(masked.running_var() == Approx(1.066667));
  plain({1, 1000, 2, 3, 4, -70}, true, targets);
  CHECK(plain.running_mean() == Approx(0.1 * 940 / 6));
}

TEST_CASE("a single valid position gives zero and leaves the running variance as it was") {
  OneChannel norm(3);
  const std::vector<double> y = norm({5, 100, 7}, true, {-1, 0, -1});
  CHECK(y[1] == 0);
  CHECK(norm.running_var() == 1);
  CHECK(norm.running_mean() == Approx(10));
  // No valid position at all: nothing moves, nothing is nan.
  OneChannel none(3);
  for (const double value : none({5, 100, 7}, true, {-1, -1, -1})) CHECK(std::isfinite(value));
  CHECK(none.running_mean() == 0);
  CHECK(none.running_var() == 1);
}

TEST_CASE("BatchNorm over one position per micro-batch is refused where it is asked for") {
  for (const std::vector<std::string>& sets :
       {std::vector<std::string>{"train.batch=1"}, {"train.batch=4", "train.accumulate=4"}}) {
    std::vector<std::string> all = {"model.context=1", "model.norm=batchnorm"};
    all.insert(all.end(), sets.begin(), sets.end());
    std::string message = "no error";
    try {
      small_run(all);
    } catch (const ConfigError& error) {
      message = error.what();
    }
    CHECK(message ==
          "--set model.norm: layers.0.attention.norm_in: a norm over the batch needs more than one position per batch "
          "('model.norm' is 'batchnorm', 'model.placement' is 'pre')");
  }
}

TEST_CASE("a model with BatchNorm evaluates sequence by sequence as it does in batches") {
  const Corpus corpus(ramp(), 0.5);
  const RunConfig wide = small_run({"model.norm=batchnorm", "train.batch=8"}),
                  narrow = small_run({"model.norm=batchnorm", "train.batch=1"});
  const Batches batches(corpus, 1, wide.context);
  Trainer by_8(model_config(wide, 10), train_config(wide), &batches, 1),
      by_1(model_config(narrow, 10), train_config(narrow), &batches, 1);
  for (int i = 0; i < 3; ++i) by_8.step();
  for (int p = 0; p < by_8.params().count(); ++p) {
    std::copy_n(by_8.params().value(p), by_8.params().spec(p).shape.count(), by_1.params().value(p));
  }
  by_1.restore(3, 0);
  const double loss = by_8.evaluate(2);
  CHECK(by_1.evaluate(16) == Approx(loss).epsilon(1e-6));
  CHECK(by_8.evaluate(2) == loss);
}
