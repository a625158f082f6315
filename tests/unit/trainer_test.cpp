// Training: accumulation, clipping, evaluation, divergence, threads.
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "../small_run.h"
#include "../test.h"
#include "core/parallel.h"
#include "core/text.h"

using namespace normlab;

namespace {

SourceText pattern(const std::vector<uint16_t>& period, int64_t vocabulary, std::size_t length) {
  SourceText text;
  for (std::size_t i = 0; i < length; ++i) text.tokens.push_back(period[i % period.size()]);
  text.vocabulary = vocabulary;
  text.units = Units::numbers;
  return text;
}

// A trainer and what it stands on.
class Training {
 public:
  explicit Training(const RunConfig& config) : Training(config, load_corpus(data_config(config), config.context)) {}
  Training(const RunConfig& config, Corpus corpus)
      : corpus_(std::move(corpus)),
        batches_(corpus_, static_cast<uint64_t>(config.seed), config.context),
        trainer_(model_config(config, corpus_.vocabulary()), train_config(config), &batches_,
                 static_cast<uint64_t>(config.seed)) {}
  Trainer* operator->() { return &trainer_; }
  const Corpus& corpus() const { return corpus_; }
  const Batches& batches() const { return batches_; }

  std::vector<double> losses(int steps) {
    std::vector<double> out;
    for (int i = 0; i < steps; ++i) out.push_back(trainer_.step().loss);
    return out;
  }
  std::vector<real> weights() {  // states included
    std::vector<real> out;
    for (int p = 0; p < trainer_.params().count(); ++p) {
      out.insert(out.end(), trainer_.params().value(p),
                 trainer_.params().value(p) + trainer_.params().spec(p).shape.count());
    }
    return out;
  }
  std::vector<real> moments() {
    std::vector<real> out;
    for (int s = 0; s < trainer_.optimizer().states(); ++s) {
      Slab& slab = trainer_.optimizer().state(s);
      out.insert(out.end(), slab.data(), slab.data() + slab.size());
    }
    return out;
  }

 private:
  Corpus corpus_;
  Batches batches_;
  Trainer trainer_;
};

// Bit for bit, without Catch printing thousands of numbers where they differ.
bool same(const std::vector<real>& a, const std::vector<real>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(real)) == 0;
}

std::unique_ptr<Training> small(const std::vector<std::string>& sets) {
  set_threads(1);  // on a busy machine threads that wait for each other cost more than these models
  return std::make_unique<Training>(small_run(sets));
}

std::vector<std::string> operator+(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("accumulated micro-batches train like the large batch, with dropout and with padding too") {
  const std::vector<std::vector<std::string>> variants = {
      {},
      {"model.dropout=0.2"},
      {"data.padding=0.4"},
      {"model.norm=layernorm", "model.placement=post", "train.clip=0.5"}};
  for (const std::vector<std::string>& variant : variants) {
    const auto whole = small(variant + std::vector<std::string>{"train.batch=8", "train.slots=1"});
    const std::vector<double> wanted = whole->losses(10);
    for (const std::vector<std::string>& cut : {std::vector<std::string>{"train.accumulate=4"},
                                                {"train.accumulate=8"},
                                                {"train.slots=4"},
                                                {"train.accumulate=2", "train.slots=2"}}) {
      const auto parts = small(variant + cut + std::vector<std::string>{"train.batch=8"});
      const std::vector<double> got = parts->losses(10);
      INFO(join(variant, " ") << " " << join(cut, " "));
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(wanted[i]).epsilon(1e-5));
      CHECK((*parts)->tokens_seen() == (*whole)->tokens_seen());
    }
  }
}

TEST_CASE("loss and gradient are means over the valid targets of the update, not means of means") {
  // With the head at zero every target costs ln V. With a final norm that gives 1 everywhere the head's gradient is 1 /
  // V minus the share of each token among the targets, in each of the 16 channels, and every other gradient is zero.
  const auto training = small({"data.padding=0.5", "train.accumulate=4", "model.norm=layernorm"});
  ParamStore& store = (*training)->params();
  const auto fill = [&](const char* name, double value) {
    const int p = store.find(name);
    std::fill_n(store.value(p), store.spec(p).shape.count(), static_cast<real>(value));
  };
  fill("head.weight", 0);
  fill("final_norm.weight", 0);
  fill("final_norm.bias", 1);
  (*training)->restore(0, 0);

  const auto vocabulary = static_cast<std::size_t>(training->corpus().vocabulary());
  std::vector<double> count(vocabulary);
  std::vector<int32_t> tokens(8), targets(8);
  double valid = 0, square = 0;
  for (int64_t sequence = 0; sequence < 4; ++sequence) {
    training->batches().train(1, sequence, tokens.data(), targets.data());
    for (const int32_t target : targets) {
      if (target >= 0) ++valid, ++count[static_cast<std::size_t>(target)];
    }
  }
  for (const double n : count) square += std::pow(1 / static_cast<double>(vocabulary) - n / valid, 2);
  const StepResult step = (*training)->step();
  CHECK(valid < 32);
  CHECK(static_cast<double>(step.tokens) == valid);
  CHECK(step.loss == Approx(std::log(static_cast<double>(vocabulary))).epsilon(1e-6));
  CHECK(step.grad_norm == Approx(std::sqrt(16 * square)).epsilon(1e-5));
}

TEST_CASE("clipping happens once per update on the whole gradient, and the norm reported is that before it") {
  // Under SGD with rate 1 the update is the clipped gradient.
  const std::vector<std::string> sgd = {"train.optimizer=sgd", "train.lr=1", "train.accumulate=4"};
  const StepResult free = (*small(sgd))->step();
  CHECK(free.update_norm == Approx(free.grad_norm).epsilon(1e-5));
  const StepResult clipped = (*small(sgd + std::vector<std::string>{"train.clip=0.01"}))->step();
  REQUIRE(free.grad_norm > 0.01);
  CHECK(clipped.grad_norm == free.grad_norm);
  CHECK(clipped.update_norm == Approx(0.01).epsilon(1e-5));
  const StepResult wide = (*small(sgd + std::vector<std::string>{"train.clip=1e6"}))->step();
  CHECK(wide.update_norm == free.update_norm);
}

TEST_CASE("the rate reported is the one used in that update") {
  const auto training = small({"train.optimizer=sgd", "train.lr=1", "train.warmup=4"});
  for (const double lr : {0.25, 0.5, 0.75, 1.0, 1.0}) {
    const StepResult step = (*training)->step();
    CHECK(step.lr == lr);
    CHECK(step.update_norm == Approx(lr * step.grad_norm).epsilon(1e-4));
  }
}

TEST_CASE("evaluation never moves the training, with dropout and running statistics") {
  for (const char* norm : {"rmsnorm", "batchnorm"}) {
    const std::vector<std::string> sets = {str("model.norm=", norm), "model.dropout=0.3"};
    const auto plain = small(sets), evaluated = small(sets);
    for (int i = 0; i < 6; ++i) {
      const double wanted = (*plain)->step().loss;
      CHECK((*evaluated)->step().loss == wanted);
      const std::vector<real> before = evaluated->weights();
      (*evaluated)->evaluate(1 + i);
      CHECK(same(evaluated->weights(), before));
    }
    CHECK(same(evaluated->weights(), plain->weights()));
  }
}

TEST_CASE("dropout is off in evaluation, bit for bit, and on in training") {
  const auto none = small({"model.dropout=0"});
  const double validation = (*none)->evaluate(3), loss = (*none)->step().loss;
  for (const char* rate : {"0.2", "0.9"}) {
    const auto dropping = small({str("model.dropout=", rate)});
    CHECK((*dropping)->evaluate(3) == validation);
    CHECK((*dropping)->evaluate(3) == validation);
    CHECK((*dropping)->step().loss != loss);
  }
}

TEST_CASE("every number of a step is the same bits for any number of threads", "[threads]") {
  const std::vector<std::vector<std::string>> variants = {
      {"model.norm=rmsnorm", "model.placement=post", "model.dropout=0.1"},
      {"model.norm=layernorm", "model.placement=deepnorm", "train.accumulate=2", "model.qk_norm=rmsnorm"},
      {"model.norm=batchnorm", "model.placement=pre"},
      {"model.norm=batchnorm", "model.placement=sandwich", "train.accumulate=2", "data.padding=0.3"},
      {"model.norm=groupnorm", "model.placement=sandwich", "model.activation=swiglu", "model.position=rope"},
      {"model.norm=instancenorm", "model.placement=pre", "model.tie_embeddings=true"},
      {"model.attention_cap=0.5", "model.attention_scale_learned=true", "model.v_norm=rmsnorm", "model.logit_cap=2",
       "train.z_loss=0.1"}};
  for (const std::vector<std::string>& variant : variants) {
    const auto run = [&](int count) {
      const auto training =
          small(variant + std::vector<std::string>{"train.batch=8", "train.optimizer=adamw", "train.weight_decay=0.1"});
      set_threads(count);
      std::vector<double> out;
      for (int i = 0; i < 4; ++i) {
        const StepResult s = (*training)->step();
        out.insert(out.end(), {s.loss, s.grad_norm, s.param_norm, s.update_norm, (*training)->evaluate(1)});
      }
      set_threads(1);
      return std::pair{out, training->weights()};
    };
    const auto one = run(1);
    INFO(join(variant, " "));
    for (const int count : {2, 3, 5, 8}) {
      const auto many = run(count);
      CHECK(many.first == one.first);
      CHECK(same(many.second, one.second));
    }
  }
}

TEST_CASE("a model learns a repeated pattern and predicts the next token, not the one after it") {
  set_threads(1);
  const RunConfig config = small_run({"train.lr=0.01", "train.steps=200"});
  Training training(config, Corpus(pattern({0, 1, 2}, 3, 300), 0.1));
  const std::vector<double> losses = training.losses(200);
  CHECK(losses.front() > 0.8);
  CHECK(losses.back() < 0.05);
  CHECK(training->evaluate(2) < 0.05);

  Graph graph(training->params(), {1, 8});
  const Decoder decoder = build_decoder(graph, model_config(config, 3));
  graph.keep(decoder.logits);
  graph.plan(Plan::inference);
  graph.allocate_shared();
  graph.prepare();
  Workspace work(graph, false);
  const std::vector<int32_t> tokens = {1, 2, 0, 1, 2, 0, 1, 2}, next = {2, 0, 1, 2, 0, 1, 2, 0};
  Pass pass;
  pass.training = false;
  pass.tokens = tokens.data();
  pass.targets = next.data();
  graph.forward(work, pass);
  for (int64_t t = 0; t < 8; ++t) {
    const real* row = graph.value(work, decoder.logits).row(t);
    CHECK(std::max_element(row, row + 3) - row == next[static_cast<std::size_t>(t)]);
  }
}

TEST_CASE("a step that diverges says why and leaves parameters, statistics and moments as they were") {
  for (const char* norm : {"rmsnorm", "batchnorm"}) {
    const auto training = small({"train.lr=1e30", str("model.norm=", norm)});
    std::vector<real> weights, moments;
    StepResult step;
    for (int i = 0; i < 20 && step.trouble.empty(); ++i) {
      weights = training->weights();
      moments = training->moments();
      step = (*training)->step();
    }
    INFO(norm << ": " << step.trouble);
    REQUIRE_FALSE(step.trouble.empty());
    CHECK(step.step > 1);
    CHECK((step.trouble.rfind("the loss is ", 0) == 0 || step.trouble.rfind("the gradient of ", 0) == 0));
    CHECK_FALSE((std::isfinite(step.loss) && std::isfinite(step.grad_norm)));
    CHECK(std::isnan(step.update_norm));
    CHECK((*training)->steps_done() == step.step - 1);
    CHECK(same(training->weights(), weights));
    CHECK(same(training->moments(), moments));
  }
}

TEST_CASE("a gradient that is not finite although the loss is finite stops the step with the name of its parameter") {
  // Without eps the final norm makes a stream of 1e-38 one of 1, and its gradient 1e38 times as large: too large for
  // fp32.
  const auto training = small({"norm.eps=0", "model.position=none", "model.bias=false"});
  ParamStore& store = (*training)->params();
  for (int p = 0; p < store.count(); ++p) {
    const std::string& name = store.spec(p).name;
    double factor = 1;
    if (name.ends_with("attention.out.weight") || name.ends_with("ffn.down.weight")) factor = 0;
    if (name == "embedding.token.weight") factor = 1e-37;
    if (name == "head.weight") factor = 1e5;
    for (int64_t i = 0; i < store.spec(p).shape.count(); ++i) {
      store.value(p)[i] = static_cast<real>(factor * static_cast<double>(store.value(p)[i]));
    }
  }
  (*training)->restore(0, 0);
  const std::vector<real> before = training->weights();
  const StepResult step = (*training)->step();
  CHECK(std::isfinite(step.loss));
  CHECK(step.trouble == "the gradient of embedding.token.weight is not finite");
  CHECK_FALSE(std::isfinite(step.grad_norm));
  CHECK((*training)->steps_done() == 0);
  CHECK(same(training->weights(), before));
  CHECK(same(training->moments(), std::vector<real>(training->moments().size())));
}

TEST_CASE("a model's cost is known without building its memory") {
  // width 16, ffn 64, vocabulary 10: embeddings 160 + 128; per layer 4 (256 + 16) + (1024 + 64) + (1024 + 16) + 2 norms
  // of 16; final norm 16; head 160.
  const RunConfig config = small_run({});
  const Trainer trainer(model_config(config, 10), train_config(config), nullptr, 0, false);
  CHECK(trainer.cost().parameters == 160 + 128 + 2 * (4 * 272 + 1088 + 1040 + 32) + 16 + 160);
  // A parameter's multiply-add is 2 FLOPs forward and 4 backward: matrices 2 (1024 + 2048) + 160, attention 2 products
  // of the causal half.
  const double matrices = 6.0 * (2 * (4 * 256 + 2 * 1024) + 160);
  const double attention = 3.0 * 2 /* layers */ * 4 * 16 * 4.5 /* mean of 1 .. 8 */;
  CHECK(trainer.cost().flops_per_token == Approx(matrices + attention));
  CHECK(trainer.cost().memory > 4.0 * 3 * 7000);
}

TEST_CASE("sizes are counted in 64 bits") {
  CHECK(Shape{64, 1024, 50257}.count() == 3293642752);
  const RunConfig config = small_run({"train.batch=256", "model.context=1024", "train.slots=4"});
  const Trainer trainer(model_config(config, 50257), train_config(config), nullptr, 0, false);
  CHECK(trainer.cost().memory > 4.0 * 4 * 3293642752);  // the logits of four slots alone, fp32
}
