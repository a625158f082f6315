#include "train/initialize.h"

#include <algorithm>

#include "core/text.h"

namespace normlab {

namespace {

class Variance {
 public:
  void add(const ConstView& x) {
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t j = 0; j < x.cols; ++j) {
        const auto value = static_cast<double>(x.row(r)[j]);
        sum_ += value, squares_ += value * value;
      }
    }
    count_ += static_cast<double>(x.rows * x.cols);
  }
  double value() const { return squares_ / count_ - sum_ / count_ * (sum_ / count_); }

 private:
  double sum_ = 0, squares_ = 0, count_ = 0;
};

// Of every sub-layer. Sequence by sequence, so that the pass needs little memory, unless a norm wants them together.
std::vector<SublayerVariances> measure(ModelConfig model, ParamStore& store, const Batches& batches, int64_t sequences,
                                       int64_t micro) {
  model.dropout = 0;
  const int64_t together = needs_whole_batch(model) ? micro : 1;
  Graph graph(store, {together, model.context}, model.precision);
  const Decoder decoder = build_decoder(graph, model);
  for (const SublayerVars& s : decoder.sublayers) graph.keep(s.stream_in), graph.keep(s.branch_out);
  graph.plan(Plan::inference);
  graph.allocate_shared();
  graph.prepare();
  Workspace work(graph, false);
  std::vector<int32_t> tokens(static_cast<std::size_t>(together * model.context)), targets(tokens.size());
  std::vector<Variance> stream(decoder.sublayers.size()), branch(stream.size());
  for (int64_t first = 0; first < sequences; first += together) {
    for (int64_t i = 0; i < together; ++i)
      batches.train(1, first + i, tokens.data() + i * model.context, targets.data() + i * model.context);
    Pass pass;
    pass.again = true;  // running statistics stay
    pass.tokens = tokens.data();
    pass.targets = targets.data();
    graph.forward(work, pass);
    for (std::size_t i = 0; i < stream.size(); ++i) {
      stream[i].add(graph.value(work, decoder.sublayers[i].stream_in));
      branch[i].add(graph.value(work, decoder.sublayers[i].branch_out));
    }
  }
  std::vector<SublayerVariances> out;
  for (std::size_t i = 0; i < stream.size(); ++i) out.push_back({stream[i].value(), branch[i].value()});
  return out;
}

}  // namespace

void initialize(const ModelConfig& model, ParamStore& store, uint64_t seed, const Batches* batches, int64_t sequences,
                int64_t micro) {
  store.initialize(seed);
  const std::vector<const Placement*> placements = placements_of(model);
  const bool any = std::any_of(placements.begin(), placements.end(),
                               [&](const Placement* p) { return is_measured(*p, model.placement_options); });
  if (batches == nullptr || !any) return;
  const std::vector<SublayerVariances> all = measure(model, store, *batches, sequences, micro);
  // Layers in a row of one placement belong together.
  for (int64_t first = 0, end = 0; first < model.layers; first = end) {
    const Placement& placement = model.placement_of(first);
    while (end < model.layers && &model.placement_of(end) == &placement) ++end;
    if (!is_measured(placement, model.placement_options)) continue;
    const std::vector<double> start = placement.measured.start({all.begin() + 2 * first, all.begin() + 2 * end});
    for (int64_t i = 0; i < 2 * (end - first); ++i) {
      const int p =
          store.find(str("layers.", first + i / 2, i % 2 == 0 ? ".attention." : ".ffn.", placement.measured.vector));
      std::fill_n(store.value(p), store.spec(p).shape.count(), static_cast<real>(start[static_cast<std::size_t>(i)]));
    }
  }
}

}  // namespace normlab
