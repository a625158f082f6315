// Single ops as the graph runs them, between a source and a sink that cost nothing: attention and the row norms.
#include "core/text.h"
#include "lab/bench.h"
#include "normlab/ops.h"

namespace normlab {

namespace {

// The first pass (update 0) fills the memory with numbers; later ones find them there, because the plan reuses no
// memory.
void fill_once(const OpContext& c, const View& view) {
  if (c.pass.update != 0) return;
  for (int64_t r = 0; r < view.rows; ++r)
    for (int64_t j = 0; j < view.cols; ++j) view.row(r)[j] = bench_number(r * view.cols + j);
}

class Source final : public Op {
 public:
  std::string_view name() const override { return "source"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override { fill_once(c, c.out()); }
  void backward(const OpContext&) const override {}
};

class Sink final : public Op {
 public:
  std::string_view name() const override { return "sink"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext&) const override {}
  void backward(const OpContext& c) const override { fill_once(c, c.grad(0).view); }
};

// A graph of one op, with one workspace per thread, as the slots of a training step.
class Rig {
 public:
  Rig(int64_t time, int workspaces, const std::function<Var(Rig&)>& build) : graph_(store_, {1, time}) {
    seed_ = graph_.param({.name = "seed", .shape = {1}});
    Var y = build(*this);
    graph_.set_loss(graph_.append(std::make_unique<Sink>(), {y}, {1}));
    graph_.plan(Plan::training, false);
    store_.allocate();
    store_.initialize(1);
    for (int i = 0; i < workspaces; ++i) work_.push_back(std::make_unique<Workspace>(graph_));
    graph_.allocate_shared();
    graph_.prepare();
    for (int i = 0; i < workspaces; ++i) run(i, true, true);
    pass_.update = 1;
  }

  Var source(int64_t width) { return graph_.append(std::make_unique<Source>(), {seed_}, {1, graph_.time(), width}); }
  Var vector(const char* name, int64_t width, double value) {
    return graph_.param({.name = name, .shape = {width}, .mean = value});
  }

  void run(int64_t workspace, bool forward, bool backward) {
    Workspace& work = *work_[static_cast<std::size_t>(workspace)];
    if (forward) graph_.forward(work, pass_);
    if (backward) graph_.backward(work, pass_);
  }

 private:
  ParamStore store_;
  Graph graph_;
  Var seed_;
  std::vector<std::unique_ptr<Workspace>> work_;
  Pass pass_;
};

// ---- attention ----

constexpr int64_t kHeads = 4;
constexpr struct { int64_t time, head_width; } kTriangles[] = {{64, 16}, {128, 32}, {256, 64}};
constexpr struct {
  const char* name;
  bool forward, backward;
} kPasses[] = {{"forward", true, false}, {"backward", false, true}, {"forward + backward", true, true}};

Pair prepare_attention(int64_t time, int64_t head_width, bool forward, bool backward, int threads) {
  const int64_t width = kHeads * head_width;
  const auto rig = std::make_shared<Rig>(time, threads, [&](Rig& r) {
    return attention(r.source(width), r.source(width), r.source(width), kHeads, kHeads);
  });
  const double flops = attention_flops(kHeads, time, head_width) * ((forward ? 1 : 0) + (backward ? 2 : 0));
  const auto run = [=](int64_t thread) { rig->run(thread, forward, backward); };
  return {{on_threads(threads, run), flops * threads, "GFLOP/s", 1e9}, "FMA peak", fma_peak(threads)};
}

// ---- norms ----

constexpr struct {
  const char* name;
  bool centered, backward;
} kNorms[] = {{"RMSNorm forward", false, false},
              {"RMSNorm backward", false, true},
              {"LayerNorm forward", true, false},
              {"LayerNorm backward", true, true}};
constexpr struct { int64_t rows, cols; } kNormSizes[] = {{4096, 256}, {8192, 1024}};

Pair prepare_norm(int64_t rows, int64_t cols, bool centered, bool backward, int threads) {
  const int64_t part = rows / threads;
  const auto rig = std::make_shared<Rig>(part, threads, [&](Rig& r) {
    const Var x = r.source(cols), gain = r.vector("gain", cols, 1);
    return row_norm(x, gain, centered ? r.vector("bias", cols, 0) : Var{}, 1e-5, centered);
  });
  const auto run = [=](int64_t thread) { rig->run(thread, !backward, backward); };
  return {{on_threads(threads, run), norm_bytes(part, cols, backward) * threads, "GB/s", 1e9},
          "copy",
          copy_bandwidth(rows * cols * static_cast<int64_t>(sizeof(real)), threads)};
}

}  // namespace

double attention_flops(int64_t heads, int64_t time, int64_t head_width) {
  return 2 * 2.0 * static_cast<double>(heads * head_width) * static_cast<double>(time * (time + 1) / 2);
}

double norm_bytes(int64_t rows, int64_t cols, bool backward) {
  return static_cast<double>(rows * cols) * static_cast<double>(sizeof(real)) * (backward ? 3 : 2);
}

std::vector<Measurement> attention_measurements() {
  std::vector<Measurement> list;
  for (const auto& t : kTriangles) {
    for (const auto& pass : kPasses) {
      list.push_back(
          {str(pass.name, ", T=", t.time, " dh=", t.head_width), Measurement::Threads::each,
           [=](int threads) { return prepare_attention(t.time, t.head_width, pass.forward, pass.backward, threads); }});
    }
  }
  return list;
}

std::vector<Measurement> norm_measurements() {
  std::vector<Measurement> list;
  for (const auto& size : kNormSizes) {
    for (const auto& norm : kNorms) {
      list.push_back(
          {str(norm.name, " [", size.rows, "x", size.cols, "]"), Measurement::Threads::each,
           [=](int threads) { return prepare_norm(size.rows, size.cols, norm.centered, norm.backward, threads); }});
    }
  }
  return list;
}

}  // namespace normlab
