// Precision::bf16: what is rounded, and what is not.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/parallel.h"
#include "kernels/kernels.h"
#include "normlab/model.h"
#include "normlab/ops.h"
#include "small_run.h"
#include "test.h"

using namespace normlab;

namespace {

float rounded(float x) {
  kernels().round_bf16(1, &x);
  return x;
}

// loss = sum of x, so that every gradient of x is 1.
class Sum final : public Op {
 public:
  std::string_view name() const override { return "sum"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    *c.out().data = 0;
    for (int64_t r = 0; r < x.rows; ++r) *c.out().data += static_cast<real>(kernels().sum(x.cols, x.row(r)));
  }
  void backward(const OpContext& c) const override {
    const Gradient dx = c.grad(0);
    for (int64_t r = 0; r < dx.view.rows; ++r) {
      std::fill(dx.view.row(r), dx.view.row(r) + dx.view.cols, *c.grad_out().data);
    }
  }
};

ParamSpec vector_of(const char* name, Shape shape) {
  ParamSpec spec;
  spec.name = name;
  spec.shape = shape;
  return spec;
}

// One graph around `build`, its inputs being the parameter "x", set to `values`.
struct Small {
  template <class Build>
  Small(Shape shape, const std::vector<float>& values, const Build& build)
      : graph(store, {shape[0], shape[1]}, Precision::bf16) {
    const Var x = affine(graph.param(vector_of("x", shape)), 1, 0);  // an activation, so that it is rounded
    y = build(graph, x);
    graph.keep(y);
    graph.set_loss(graph.append(std::make_unique<Sum>(), {y}, {1}));
    graph.plan(Plan::training);
    store.allocate();
    store.initialize(1);
    std::copy(values.begin(), values.end(), store.value(store.find("x")));
  }
  void run() {
    graph.allocate_shared();
    graph.prepare();
    work = std::make_unique<Workspace>(graph);
    graph.forward(*work, Pass{});
    graph.backward(*work, Pass{});
  }
  const float* row(int64_t r) { return graph.value(*work, y).row(r); }

  ParamStore store;
  Graph graph;
  Var y;
  std::unique_ptr<Workspace> work;
};

}  // namespace

TEST_CASE("rounding to bfloat16 is to the nearest, ties to even, in every kernel table") {
  for (const KernelTable* table : all_kernels()) {
    if (!table->supported()) {
      WARN("SKIPPED, not a pass: kernels " << table->name << " are not supported here");
      continue;
    }
    INFO(table->name);
    // bfloat16 keeps 8 significant bits: near 1 they are 2^-7 apart.
    std::vector<float> x = {1.0f + 0x1p-8f,
                            1.0f + 0x3p-8f,
                            1.0f + 0x1.01p-8f,
                            -1.0f - 0x1p-8f,
                            0.9f,
                            257.0f,
                            259.0f,
                            0.0f,
                            -0.0f,
                            0x1p-149f,
                            std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::infinity(),
                            3.140625f};
    const std::vector<float> expected = {1.0f,
                                         1.0f + 0x1p-6f,
                                         1.0f + 0x1p-7f,
                                         -1.0f,
                                         0.8984375f,
                                         256.0f,
                                         260.0f,
                                         0.0f,
                                         -0.0f,
                                         0.0f,
                                         std::numeric_limits<float>::infinity(),
                                         std::numeric_limits<float>::infinity(),
                                         3.140625f};
    table->round_bf16(static_cast<int64_t>(x.size()), x.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      CHECK(std::bit_cast<uint32_t>(x[i]) == std::bit_cast<uint32_t>(expected[i]));
    }
    for (const uint32_t nan : {0x7f800001u, 0x7fffffffu, 0xff800001u, 0x7fc00000u}) {
      float value = std::bit_cast<float>(nan);
      table->round_bf16(1, &value);
      CHECK(std::isnan(value));
      CHECK((std::bit_cast<uint32_t>(value) & 0xffffu) == 0);
    }
  }
}

TEST_CASE("products take rounded operands, sum in fp32 and round the result") {
  // x = 1 + 2^-9 is 1 in bfloat16 and w = 257 is 256, so y = 256 where fp32 gives 257.5.
  Small one({1, 1, 1}, {1.0f + 0x1p-9f}, [](Graph& g, Var x) {
    ParamSpec w = vector_of("w", {1, 1});
    w.mean = 257;
    return linear(x, g.param(w), {});
  });
  one.run();
  CHECK(one.row(0)[0] == 256.0f);
  CHECK(one.store.value(one.store.find("w"))[0] == 257.0f);  // the master weight
  // 300 products of 1: a bfloat16 running sum would stall at 256; the fp32 sum, 300, is a bfloat16.
  Small many({1, 1, 300}, std::vector<float>(300, 1.0f), [](Graph& g, Var x) {
    ParamSpec w = vector_of("w", {1, 300});
    w.mean = 1;
    return linear(x, g.param(w), {});
  });
  many.run();
  CHECK(many.row(0)[0] == 300.0f);
}

TEST_CASE("gradients of gains and biases are summed in fp32") {
  // 1000 rows that each add 1: a bfloat16 sum stalls at 256.
  std::vector<float> x;
  for (int r = 0; r < 1000; ++r) x.insert(x.end(), {1.0f, -1.0f});
  Small norm({1, 1000, 2}, x, [](Graph& g, Var in) {
    ParamSpec gain = vector_of("gain", {2}), bias = vector_of("bias", {2});
    gain.mean = 1;
    const Graph::KeepFp32 inside(g);
    return row_norm(in, g.param(gain), g.param(bias), 0, true);
  });
  norm.run();
  CHECK(norm.work->gradient(norm.store.find("bias"))[0] == 1000.0f);
  CHECK(norm.work->gradient(norm.store.find("gain"))[0] == 1000.0f);
}

TEST_CASE("norm statistics stay fp32 unless bfloat16 is asked for, which does harm") {
  // The mean of these bfloat16 numbers, 259, lies between 258 and 260. In fp32 the row is (-3, -1, 1, 3) / sqrt(5);
  // rounding the mean to even, 260, gives
  // (-4, -2, 0, 2) / sqrt(6).
  const std::vector<float> row = {256, 258, 260, 262};
  const auto normed = [&](bool bf16_statistics) {
    const NormChoice choice{find_norm("layernorm"), 0.0, false, true, bf16_statistics, {}};
    Small s({1, 1, 4}, row, [&](Graph& g, Var x) { return apply_norm(g, choice, "norm", x); });
    s.run();
    return std::vector<float>(s.row(0), s.row(0) + 4);
  };
  CHECK(normed(false) == std::vector<float>{rounded(-3 / std::sqrt(5.0f)), rounded(-1 / std::sqrt(5.0f)),
                                            rounded(1 / std::sqrt(5.0f)), rounded(3 / std::sqrt(5.0f))});
  const float s = rounded(std::sqrt(6.0f));
  CHECK(normed(true) == std::vector<float>{rounded(-4 / s), rounded(-2 / s), 0.0f, rounded(2 / s)});
}

TEST_CASE("a bf16 run differs from fp32 by rounding only, and not between thread counts", "[threads]") {
  // A loss of order ln V moves by a few roundings (2^-9 each) of its logits: well below 2 %.
  const auto losses = [](const char* precision, int count) {
    set_threads(count);
    const RunConfig config = small_run({std::string("run.precision=") + precision});
    const Corpus corpus = load_corpus(data_config(config), config.context);
    const Batches batches(corpus, 1, config.context);
    Trainer trainer(model_config(config, corpus.vocabulary()), train_config(config), &batches, 1);
    std::vector<double> out;
    for (int i = 0; i < 5; ++i) out.push_back(trainer.step().loss);
    set_threads(1);
    return out;
  };
  const auto fp32 = losses("fp32", 1), bf16 = losses("bf16", 1), bf16_threads = losses("bf16", 3);
  CHECK(bf16 == bf16_threads);
  for (std::size_t i = 0; i < fp32.size(); ++i) {
    CHECK(bf16[i] != fp32[i]);
    CHECK(std::abs(bf16[i] - fp32[i]) < 0.02 * fp32[i]);
  }
}
