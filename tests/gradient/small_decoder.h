// The gradient check's small model with values, tokens and memory, for tests that run it.
#pragma once

#include <vector>

#include "core/parallel.h"
#include "core/rng.h"
#include "normlab/model.h"

namespace normlab {

struct SmallDecoder {
  SmallDecoder(const ModelConfig& config, Plan kind, bool reuse)
      : graph(store, {3, config.context}), model(build_decoder(graph, config)) {
    set_threads(1);  // for so little work, waiting for each other takes threads longer than the work
    graph.keep(model.logits);
    graph.plan(kind, reuse);
    store.allocate();
    store.initialize(5);
    for (int p = 0; p < store.count(); ++p) {  // gains off 1 and biases off 0
      if (store.spec(p).role != Role::vector) continue;
      const Rng rng(5, stream_id(store.spec(p).name));
      for (int64_t e = 0; e < store.spec(p).shape.count(); ++e) {
        store.value(p)[e] += static_cast<real>(0.2 * (2 * rng.uniform(static_cast<uint64_t>(e)) - 1));
      }
    }
    graph.allocate_shared();
    graph.prepare();
    work = std::make_unique<Workspace>(graph, kind == Plan::training);
    const Rng rng(5, stream_id("tokens"));
    for (int64_t i = 0; i < 3 * config.context; ++i) {
      const auto draw = 2 * static_cast<uint64_t>(i);
      tokens.push_back(static_cast<int32_t>(rng.below(draw, static_cast<uint64_t>(config.vocabulary))));
      targets.push_back(
          i % 5 == 2 ? -1 : static_cast<int32_t>(rng.below(draw + 1, static_cast<uint64_t>(config.vocabulary))));
    }
    pass.tokens = tokens.data();
    pass.targets = targets.data();
    pass.seed = 5;
  }

  std::vector<real> logits() {
    graph.forward(*work, pass);
    std::vector<real> out;
    const ConstView y = graph.value(*work, model.logits);
    for (int64_t r = 0; r < y.rows; ++r) out.insert(out.end(), y.row(r), y.row(r) + y.cols);
    return out;
  }

  // Loss first, then the gradients of all parameters.
  std::vector<real> step() {
    graph.forward(*work, pass);
    graph.backward(*work, pass);
    std::vector<real> out = {graph.loss(*work)};
    out.insert(out.end(), work->gradients(), work->gradients() + store.total());
    return out;
  }

  ParamStore store;
  Graph graph;
  Decoder model;
  std::unique_ptr<Workspace> work;
  std::vector<int32_t> tokens, targets;
  Pass pass;
};

}  // namespace normlab
