// The ends of a model: tokens that go in, targets that come out, and positions that take no part.
#include <cmath>
#include <limits>
#include <memory>

#include "../model_probe.h"
#include "../small_run.h"
#include "core/parallel.h"
#include "core/text.h"
#include "data/batches.h"
#include "kernel_tables.h"
#include "normlab/error.h"
#include "train/trainer.h"

using namespace normlab;

namespace {

ParamSpec tensor_of(const char* name, Shape shape) {
  ParamSpec spec;
  spec.name = name;
  spec.shape = shape;
  return spec;
}

struct Loss {
  double loss = 0;
  std::vector<double> gradient;  // of the logits
};

// The cross entropy, or z loss, of (1, T, V) logits.
Loss loss_of(const std::vector<real>& logits, const std::vector<int32_t>& targets, double scale = 1,
             Var (*of)(Var) = cross_entropy) {
  const auto time = static_cast<int64_t>(targets.size()), count = static_cast<int64_t>(logits.size());
  ParamStore store;
  Graph graph(store, {1, time});
  graph.set_loss(of(graph.param(tensor_of("z", {1, time, count / time}))));
  graph.plan(Plan::training);
  store.allocate();
  std::copy(logits.begin(), logits.end(), store.value(0));
  Workspace work(graph);
  work.poison();
  std::fill_n(work.gradients(), store.total(), std::numeric_limits<real>::quiet_NaN());
  Pass pass;
  pass.targets = targets.data();
  pass.loss_scale = scale;
  graph.prepare();
  graph.forward(work, pass);
  graph.backward(work, pass);
  return {static_cast<double>(graph.loss(work)), {work.gradient(0), work.gradient(0) + count}};
}

std::string loss_error(const std::vector<int32_t>& targets) {
  try {
    loss_of(std::vector<real>(5 * targets.size(), 0), targets);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

std::string token_error(const std::vector<int32_t>& tokens) {
  set_threads(1);
  ModelProbe probe(small_model(5), 1, 8);
  try {
    probe.logits(tokens, false, std::vector<int32_t>(8, 0));
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

// Loss and all parameter gradients of a model over sequences of 8 tokens each.
std::vector<double> model_step(const ModelConfig& config, const std::vector<int32_t>& tokens,
                               const std::vector<int32_t>& targets) {
  set_threads(1);
  ParamStore store;
  Graph graph(store, {static_cast<int64_t>(tokens.size()) / 8, 8});
  build_decoder(graph, config);
  graph.plan(Plan::training);
  store.allocate();
  store.initialize(3);
  graph.allocate_shared();
  graph.prepare();
  Workspace work(graph);
  work.poison();
  Pass pass;
  pass.tokens = tokens.data();
  pass.targets = targets.data();
  graph.forward(work, pass);
  graph.backward(work, pass);
  std::vector<double> out = {static_cast<double>(graph.loss(work))};
  for (int p = 0; p < store.count(); ++p) {
    if (!store.spec(p).trainable) continue;
    out.insert(out.end(), work.gradient(p), work.gradient(p) + store.spec(p).shape.count());
  }
  return out;
}

}  // namespace

TEST_CASE("a target outside the vocabulary is refused with its position and value, -1 alone is left out") {
  CHECK(loss_error({0, 4, -1, 2}) == "no error");
  CHECK(loss_error({0, -4}) == "target -4 at position 1: expected 0 to 4, or -1 for a position that takes no part");
  CHECK(loss_error({1, 2, 5}).rfind("target 5 at position 2: expected 0 to 4", 0) == 0);
  CHECK(loss_error({std::numeric_limits<int32_t>::max()}).rfind("target 2147483647 at position 0: ", 0) == 0);
  CHECK(loss_error({std::numeric_limits<int32_t>::min()}).rfind("target -2147483648 at position 0: ", 0) == 0);
}

TEST_CASE("a token outside the vocabulary is refused with its position and value") {
  CHECK(token_error({0, 1, 2, 3, 4, 0, 1, 2}) == "no error");
  CHECK(token_error({0, 1, 2, 3, 4, 5, 1, 2}) == "token 5 at position 5: expected 0 to 4");
  CHECK(token_error({-1, 1, 2, 3, 4, 0, 1, 2}) == "token -1 at position 0: expected 0 to 4");
}

TEST_CASE("the loss of logits a thousand apart is 0 or a thousand, and its gradient 0 or 1") {
  for (const real offset : {real(0), real(-1e30), real(3e38)}) {
    CAPTURE(offset);
    const real high = offset == 0 ? real(1000) : offset, low = offset == 0 ? real(0) : offset - std::abs(offset) / 8;
    const Loss right = loss_of({high, low}, {0}), wrong = loss_of({high, low}, {1});
    CHECK(right.loss == 0);
    CHECK(wrong.loss == Approx(static_cast<double>(high) - static_cast<double>(low)));
    CHECK(right.gradient == std::vector<double>{0, 0});
    CHECK(wrong.gradient == std::vector<double>{1, -1});
  }
  CHECK(loss_of({1000, 0}, {1}).loss == 1000);
  // Equal logits cost ln V, however large they are.
  for (const real level : {real(0), real(1e4), real(-3e38)})
    CHECK(loss_of(std::vector<real>(5, level), {3}).loss == Approx(std::log(5.0)).epsilon(1e-6));
}

TEST_CASE("loss and gradient of logits do not depend on what is added to all of them") {
  const Loss plain = loss_of({1, 2, 3, real(-1.5), 0}, {1});
  CHECK(plain.loss == Approx(1.4473175).epsilon(1e-6));  // ln(e^-1 + 1 + e + e^-3.5 + e^-2)
  for (const real shift : {real(1e4), real(-1e5), real(1048576)}) {
    const Loss shifted = loss_of({shift + 1, shift + 2, shift + 3, shift - real(1.5), shift}, {1});
    CHECK(shifted.loss == plain.loss);
    CHECK(shifted.gradient == plain.gradient);
  }
}

TEST_CASE("positions without targets add nothing: no loss, a gradient of exactly 0, and never nan") {
  const Loss none = loss_of({1, 2, 3, -50, 800, 7}, {-1, -1});
  CHECK(none.loss == 0);
  CHECK(none.gradient == std::vector<double>(6, 0));
  const Loss second = loss_of({9, 9, 9, 1, 2, 3}, {-1, 0}), alone = loss_of({1, 2, 3}, {0});
  CHECK(second.loss == alone.loss);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(second.gradient[i] == 0);
    CHECK(second.gradient[i + 3] == alone.gradient[i]);
  }
  // Nothing a left-out position computes reaches the others, not even a nan.
  const real nan = std::numeric_limits<real>::quiet_NaN();
  const Loss poisoned = loss_of({nan, nan, nan, 1, 2, 3}, {-1, 0});
  CHECK(poisoned.loss == alone.loss);
  CHECK(std::vector<double>(poisoned.gradient.begin(), poisoned.gradient.begin() + 3) == std::vector<double>(3, 0));
}

TEST_CASE("the z loss is the square of log Z, of valid targets only, and keeps its digits at large logits") {
  const real one = static_cast<real>(std::log(2.0)), two = static_cast<real>(std::log(3.0));
  const Loss small = loss_of({0, one, two, 5, 6, 7}, {2, -1}, 0.5, z_loss);  // Z = 6
  CHECK(small.loss == Approx(3.210402).epsilon(1e-6));
  for (std::size_t j = 0; j < 3; ++j)  // 2 ln 6 (j + 1) / 6, halved
    CHECK(small.gradient[j] == Approx(1.791759 * static_cast<double>(j + 1) / 6).epsilon(1e-6));
  CHECK(std::vector<double>(small.gradient.begin() + 3, small.gradient.end()) == std::vector<double>{0, 0, 0});
  const Loss large = loss_of({real(1e4), real(1e4) - 1}, {0}, 1, z_loss);  // log Z = 1e4 + ln(1 + 1 / e)
  CHECK(large.loss == Approx(10000.31326 * 10000.31326).epsilon(1e-6));
  CHECK(large.gradient[0] / large.gradient[1] == Approx(std::exp(1.0)).epsilon(1e-6));
  const real nan = std::numeric_limits<real>::quiet_NaN();
  CHECK(std::isnan(loss_of({1, nan, 2}, {0}, 1, z_loss).loss));
  CHECK(loss_of({nan, nan, 0, 0}, {-1, 1}, 1, z_loss).loss == Approx(0.480453).epsilon(1e-6));  // (ln 2)^2
}

TEST_CASE("a mean over two micro-batches weighs every target alike") {
  // One target of loss 2 and three of 1: 5 / 4, not the mean of the means, 3 / 2. A logit of z against a sum of the
  // others of 1 costs ln(1 + e^-z).
  const auto logit = [](double loss) { return static_cast<real>(-std::log(std::exp(loss) - 1)); };
  const Loss a = loss_of({logit(2), 0, 7, 7}, {0, -1}, 0.25),
             b = loss_of({logit(1), 0, 0, logit(1), logit(1), 0}, {0, 1, 0}, 0.25);
  CHECK((a.loss + b.loss) / 4 == Approx(1.25));
  CHECK(a.gradient[0] == Approx((std::exp(-2.0) - 1) / 4));
  CHECK(b.gradient[0] == Approx((std::exp(-1.0) - 1) / 4));
}

TEST_CASE(
    "a sequence without targets leaves loss and gradients as they are without it, under every norm of tokens and "
    "sequences") {
  const std::vector<int32_t> tokens = {1, 5, 2, 9, 0, 3, 3, 7}, targets = {5, 2, 9, 0, 3, 3, 7, 1};
  std::vector<int32_t> both = tokens, masked = targets;
  both.insert(both.end(), {4, 4, 8, 8, 0, 1, 0, 1});
  masked.insert(masked.end(), 8, -1);
  for (const NormDef* norm : all_norms()) {
    if (norm->reach == Reach::batch) continue;
    const ModelConfig config = small_model(11, {str("model.norm=", norm->name), "model.qk_norm=layernorm"});
    const std::vector<double> alone = model_step(config, tokens, targets), padded = model_step(config, both, masked);
    INFO(norm->name);
    REQUIRE(alone.size() == padded.size());
    // The same terms and zeros, summed in other blocks.
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < alone.size(); ++i) {
      largest = std::max(largest, std::abs(alone[i]));
      apart = std::max(apart, std::abs(alone[i] - padded[i]));
    }
    CHECK(apart <= 1e-6 * largest);
  }
}

TEST_CASE("dropout keeps its share of elements and divides them by it; evaluation keeps all as they are") {
  constexpr int64_t kCount = 40000;
  for (const double rate : {0.2, 0.9, 0.999}) {
    ParamStore store;
    Graph graph(store, {1, 1});
    const Var y = dropout(graph.param(tensor_of("x", {1, 1, kCount})), rate);
    graph.keep(y);
    graph.plan(Plan::inference);
    store.allocate();
    std::fill_n(store.value(0), kCount, real(3));
    graph.prepare();
    Workspace work(graph, false);
    Pass pass;
    pass.seed = 1, pass.update = 1;
    graph.forward(work, pass);
    int64_t kept = 0;
    const real* row = graph.value(work, y).row(0);
    for (int64_t i = 0; i < kCount; ++i) {
      if (row[i] == 0) continue;
      ++kept;
      if (static_cast<double>(row[i]) != Approx(3 / (1 - rate))) FAIL_CHECK("element " << i << " is " << row[i]);
    }
    // Five standard deviations of a binomial count.
    CHECK(std::abs(static_cast<double>(kept) - kCount * (1 - rate)) < 5 * std::sqrt(kCount * rate * (1 - rate)));
    pass.training = false;
    graph.forward(work, pass);
    CHECK(std::all_of(row, row + kCount, [](real v) { return v == 3; }));
  }
}

TEST_CASE("sums of gradients over a thousand tokens stay exact under bf16: tables, positions, matrices and biases") {
  // Each position adds 1 to the gradient in question; a bfloat16 running sum would stall at 256.
  for (const KernelTable* table : runnable_tables()) {
    choose_kernels(table->name);
    CAPTURE(table->name);
    ParamStore store;
    Graph graph(store, {1000, 1}, Precision::bf16);
    const Var x = add_positions(embedding(graph, graph.param(tensor_of("table", {2, 2}))),
                                graph.param(tensor_of("positions", {1, 2})));
    ParamSpec weight = tensor_of("weight", {2, 2});
    // Logits (0, 0) of V = 2: each target 1 gives dz = (1/2, -1/2); weights of the head turn it into dx.
    graph.set_loss(cross_entropy(linear(x, graph.param(weight), graph.param(tensor_of("bias", {2})))));
    graph.plan(Plan::training);
    store.allocate();
    store.initialize(1);
    const real ones[] = {1, 1, 1, 1};
    std::copy_n(ones, 4, store.value(store.find("table")));
    // dx = W^T dz with W = ((1, 0), (0, 1)).
    const real eye[] = {1, 0, 0, 1};
    std::copy_n(eye, 4, store.value(store.find("weight")));
    graph.allocate_shared();
    graph.prepare();
    Workspace work(graph);
    const std::vector<int32_t> tokens(1000, 1), targets(1000, 1);
    Pass pass;
    pass.tokens = tokens.data(), pass.targets = targets.data();
    pass.loss_scale = 2;  // dz = (1, -1)
    graph.forward(work, pass);
    graph.backward(work, pass);
    const auto gradient = [&](const char* name) {
      const int p = store.find(name);
      return std::vector<double>(work.gradient(p), work.gradient(p) + store.spec(p).shape.count());
    };
    CHECK(gradient("table") == std::vector<double>{0, 0, 1000, -1000});
    CHECK(gradient("positions") == std::vector<double>{1000, -1000});
    CHECK(gradient("bias") == std::vector<double>{1000, -1000});
    CHECK(gradient("weight") == std::vector<double>{1000, 1000, -1000, -1000});
  }
  choose_kernels("");
}

TEST_CASE("a tied model of 50257 tokens starts at a loss of ln V") {
  set_threads(1);
  ModelProbe probe(small_model(50257, {"model.tie_embeddings=true", "model.init=gpt2", "model.width=64"}), 1, 8);
  probe.logits({1, 50000, 7, 31337, 256, 9, 40000, 3}, false, {5, 50256, 0, 1234, 9999, 77, 20000, 45000});
  CHECK(std::abs(probe.loss() - 10.825) < 0.3);
}

TEST_CASE("a model whose stream is zero starts at ln V with finite gradients, under every norm and placement") {
  for (const NormDef* norm : all_norms()) {
    for (const Placement* placement : all_placements()) {
      INFO(norm->name << ", " << placement->name);
      const RunConfig config = small_run({str("model.norm=", norm->name), str("model.placement=", placement->name),
                                          "model.position=none", "model.qk_norm=rmsnorm"});
      const Corpus corpus = load_corpus(data_config(config), config.context);
      const Batches batches(corpus, 1, config.context);
      Trainer trainer(model_config(config, corpus.vocabulary()), train_config(config), &batches, 1);
      ParamStore& store = trainer.params();
      const int table = store.find("embedding.token.weight");
      std::fill_n(store.value(table), store.spec(table).shape.count(), real(0));
      trainer.restore(0, 0);
      const StepResult step = trainer.step();
      CHECK(step.trouble.empty());
      CHECK(step.loss == Approx(std::log(static_cast<double>(corpus.vocabulary()))).epsilon(1e-6));
      CHECK(std::isfinite(step.grad_norm));
    }
  }
}
