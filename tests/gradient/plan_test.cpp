// The memory plan: sharing memory between values that do not live at once changes no bit.
#include <algorithm>
#include <cmath>

#include "gradient/small_decoder.h"
#include "lab/gradcheck.h"
#include "normlab/ops.h"
#include "test.h"

namespace normlab {
namespace {

// Bit by bit, so that a NaN is no excuse.
bool same_bits(const std::vector<real>& x, const std::vector<real>& y) {
  return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin()) &&
         std::none_of(x.begin(), x.end(), [](real value) { return std::isnan(value); });
}

TEST_CASE(
    "Shared memory gives the same loss and gradients, bit by bit, as memory of one's own, for every norm and "
    "placement") {
  for (const Placement* placement : all_placements()) {
    for (const NormDef* norm : all_norms()) {
      ModelConfig config = small_model(*norm, *placement);
      config.dropout = 0.1;
      INFO(placement->name << " x " << norm->name);
      SmallDecoder own(config, Plan::training, false), shared(config, Plan::training, true);
      const std::vector<real> expected = own.step();
      shared.work->poison();
      CHECK(same_bits(shared.step(), expected));
      CHECK(shared.graph.workspace_elements() < own.graph.workspace_elements());
    }
  }
}

TEST_CASE("Shared memory gives the same bits under a scale, caps, norms of keys and values, and a z loss") {
  ModelConfig config = small_model(*find_norm("rmsnorm"), *find_placement("pre"));
  config.kv_heads = 1;
  config.qk_norm = config.v_norm = norm_choice(*find_norm("rmsnorm"), 2);
  config.qk_norm_over = QkNormOver::width, config.qk_norm_at = QkNormAt::after_rope;
  config.scores = {2, 0.5}, config.learned_scale = true;
  config.logit_cap = 2, config.z_loss = 0.1;
  SmallDecoder own(config, Plan::training, false), shared(config, Plan::training, true);
  const std::vector<real> expected = own.step();
  shared.work->poison();
  CHECK(same_bits(shared.step(), expected));
}

TEST_CASE("A second pass over used or poisoned memory gives the same bits as the first") {
  for (const NormDef* norm : all_norms()) {
    if (norm->reach == Reach::batch) continue;  // its states move
    SmallDecoder decoder(small_model(*norm, *find_placement("sandwich")), Plan::training, true);
    const std::vector<real> first = decoder.step();
    CHECK(same_bits(decoder.step(), first));
    decoder.work->poison();
    std::fill(decoder.work->gradients(), decoder.work->gradients() + decoder.store.total(), real(7));
    std::vector<real> third = decoder.step();
    // Padding between parameters belongs to nobody; only what parameters own is compared.
    for (int p = 0; p < decoder.store.count(); ++p) {
      const auto at = static_cast<std::ptrdiff_t>(1 + decoder.store.offset(p));
      CHECK(
          std::equal(third.begin() + at, third.begin() + at + decoder.store.spec(p).shape.count(), first.begin() + at));
    }
  }
}

TEST_CASE("A plan for inference gives the logits of the training plan in less memory") {
  for (const Placement* placement : all_placements()) {
    const ModelConfig config = small_model(*find_norm("rmsnorm"), *placement);
    SmallDecoder training(config, Plan::training, true), inference(config, Plan::inference, true);
    training.pass.training = inference.pass.training = false;
    inference.work->poison();
    INFO(placement->name);
    CHECK(same_bits(inference.logits(), training.logits()));
    CHECK(inference.graph.workspace_elements() < training.graph.workspace_elements());
  }
}

// y = x + 1, with declared needs, saved and scratch elements.
class Block final : public Op {
 public:
  Block(Needs needs, int64_t saved, int64_t scratch) : needs_(needs), saved_(saved), scratch_(scratch) {}
  std::string_view name() const override { return "block"; }
  Needs needs() const override { return needs_; }
  int64_t saved() const override { return saved_; }
  int64_t scratch() const override { return scratch_; }
  void forward(const OpContext& c) const override {
    for (int64_t j = 0; j < c.in(0).cols; ++j) c.out().data[j] = c.in(0).data[j] + 1;
  }
  void backward(const OpContext& c) const override {
    for (int64_t j = 0; j < c.in(0).cols; ++j) c.grad(0).view.data[j] = c.grad_out().data[j];
  }

 private:
  Needs needs_;
  int64_t saved_, scratch_;
};

Var block(Var x, Needs needs, int64_t saved = 0, int64_t scratch = 0) {
  return x.graph->append(std::make_unique<Block>(needs, saved, scratch), {x}, x.shape());
}

// w -> a -> b -> c -> loss, all of 16 elements, each a multiple of the plan's unit.
int64_t chain(Needs needs, Plan kind, bool reuse, int64_t saved = 0, int64_t scratch = 0) {
  ParamStore store;
  Graph graph(store, {1, 1});
  Var x = graph.param({.name = "w", .shape = {16}});
  for (int i = 0; i < 4; ++i) x = block(x, needs, saved, i == 2 ? scratch : 0);
  graph.set_loss(x);
  graph.plan(kind, reuse);
  return graph.workspace_elements();
}

TEST_CASE("The plan holds exactly the blocks that live at once") {
  // Own memory: 4 values and 4 gradients, the parameter's being kept elsewhere.
  CHECK(chain(Needs::nothing, Plan::training, false) == 8 * 16);
  // Nobody looks back: forward needs two values at a time; backward needs two gradients and the kept loss.
  CHECK(chain(Needs::nothing, Plan::training, true) == 3 * 16);
  // Values are kept for backward: a, b, c, loss. The loss gradient joins them; then c's gradient, beside c, which the
  // last op still reads; after that every gradient that is done makes room for the next.
  CHECK(chain(Needs::inputs, Plan::training, true) == 6 * 16);
  // Without a backward nothing is kept but the loss, and two values are alive at a time.
  CHECK(chain(Needs::both, Plan::inference, true) == 2 * 16);
  // Saved elements live from forward to backward (4 x 32 of them, all at once), scratch once for all.
  CHECK(chain(Needs::nothing, Plan::training, true, 32) >= 4 * 32);
  CHECK(chain(Needs::nothing, Plan::training, true, 0, 48) == 3 * 16 + 48);
  CHECK(chain(Needs::nothing, Plan::inference, true, 0, 48) == 2 * 16 + 48);
}

// y = x^2, whose backward reads x; `honest` = says so.
class Square final : public Op {
 public:
  explicit Square(bool honest) : honest_(honest) {}
  std::string_view name() const override { return "square"; }
  Needs needs() const override { return honest_ ? Needs::inputs : Needs::nothing; }
  void forward(const OpContext& c) const override {
    for (int64_t j = 0; j < c.in(0).cols; ++j) c.out().data[j] = c.in(0).data[j] * c.in(0).data[j];
  }
  void backward(const OpContext& c) const override {
    for (int64_t j = 0; j < c.in(0).cols; ++j) c.grad(0).view.data[j] = 2 * c.in(0).data[j] * c.grad_out().data[j];
  }

 private:
  bool honest_;
};

// d(((w^2)^2)^2) / dw = 8 w^7 at w = 1.5.
real slope(bool honest, bool reuse) {
  ParamStore store;
  Graph graph(store, {1, 1});
  Var x = graph.param({.name = "w", .shape = {1}, .mean = 1.5});
  for (int i = 0; i < 3; ++i) x = graph.append(std::make_unique<Square>(honest), {x}, {1});
  graph.set_loss(x);
  graph.plan(Plan::training, reuse);
  store.allocate();
  store.initialize(1);
  Workspace work(graph);
  graph.forward(work, {});
  graph.backward(work, {});
  return work.gradients()[0];
}

TEST_CASE("An op that hides what its backward reads is caught by comparing shared with own memory") {
  REQUIRE(slope(true, true) == Approx(8 * std::pow(1.5, 7)).epsilon(1e-14));
  REQUIRE(slope(true, true) == slope(true, false));
  REQUIRE(slope(false, true) != slope(false, false));
}

// Dropout of 4 sequences, seen as rows of heads, from sequence `first` on.
std::vector<real> dropped(int64_t batch, int64_t first) {
  ParamStore store;
  Graph graph(store, {batch, 3});
  const Var x = affine(graph.param({.name = "x", .shape = {batch, 3, 8}, .mean = 1}), 1, 0);
  const Var y = graph.merge(dropout(graph.split(x, 2), 0.5));
  graph.keep(y);
  graph.plan(Plan::inference);
  store.allocate();
  store.initialize(1);
  Workspace work(graph, false);
  Pass pass;
  pass.first_sequence = first;
  graph.forward(work, pass);
  const ConstView v = graph.value(work, y);
  std::vector<real> out;
  for (int64_t r = 0; r < v.rows; ++r) out.insert(out.end(), v.row(r), v.row(r) + v.cols);
  return out;
}

TEST_CASE("The dropout mask of a sequence does not depend on the workspace that holds it, heads or not") {
  const std::vector<real> together = dropped(4, 0);
  for (int64_t half = 0; half < 2; ++half) {
    const std::vector<real> apart = dropped(2, 2 * half);
    REQUIRE(
        std::equal(apart.begin(), apart.end(), together.begin() + half * static_cast<std::ptrdiff_t>(apart.size())));
  }
  REQUIRE(std::count(together.begin(), together.end(), real(0)) > 20);
}

}  // namespace
}  // namespace normlab
