// A decoder built for inspection: weights set by name, logits and loss read back.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "normlab/model.h"
#include "test.h"

class ModelProbe {
 public:
  ModelProbe(const normlab::ModelConfig& config, int64_t batch, int64_t time, uint64_t seed = 1)
      : graph_(store_, {batch, time}), decoder_(normlab::build_decoder(graph_, config)) {
    graph_.keep(decoder_.logits);
    graph_.plan(normlab::Plan::training);
    store_.allocate();
    store_.initialize(seed);
    graph_.allocate_shared();
  }

  normlab::ParamStore& store() { return store_; }
  const normlab::ParamSpec& spec(const std::string& name) const { return store_.spec(index(name)); }
  normlab::real* weight(const std::string& name) { return store_.value(index(name)); }
  void set(const std::string& name, const std::vector<double>& values) {
    REQUIRE(spec(name).shape.count() == static_cast<int64_t>(values.size()));
    std::transform(values.begin(), values.end(), weight(name), [](double x) { return static_cast<normlab::real>(x); });
  }
  // Zeros in every parameter whose name ends so.
  void clear(const std::string& suffix) {
    for (int p = 0; p < store_.count(); ++p) {
      const std::string& name = store_.spec(p).name;
      if (name.size() < suffix.size() || name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
        continue;
      std::fill_n(store_.value(p), store_.spec(p).shape.count(), normlab::real(0));
    }
  }

  // Logits (B, T, V), rows after each other. Targets are the tokens themselves unless given.
  std::vector<double> logits(const std::vector<int32_t>& tokens, bool training = false,
                             std::vector<int32_t> targets = {}) {
    if (targets.empty()) targets = tokens;
    REQUIRE(static_cast<int64_t>(tokens.size()) == graph_.batch() * graph_.time());
    normlab::Workspace work(graph_);
    work.poison();
    normlab::Pass pass;
    pass.training = training;
    pass.tokens = tokens.data();
    pass.targets = targets.data();
    graph_.prepare();
    graph_.forward(work, pass);
    loss_ = static_cast<double>(graph_.loss(work));
    std::vector<double> out;
    const normlab::ConstView view = graph_.value(work, decoder_.logits);
    for (int64_t r = 0; r < view.rows; ++r) {
      for (int64_t j = 0; j < view.cols; ++j) out.push_back(static_cast<double>(view.row(r)[j]));
    }
    return out;
  }
  // Of the last logits(): the mean over positions.
  double loss() const { return loss_ / static_cast<double>(graph_.batch() * graph_.time()); }

 private:
  int index(const std::string& name) const {
    INFO(name);
    REQUIRE(store_.find(name) >= 0);
    return store_.find(name);
  }

  normlab::ParamStore store_;
  normlab::Graph graph_;
  normlab::Decoder decoder_;
  double loss_ = 0;
};

inline void check_close(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance = 1e-5) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i << ": " << got[i] << ", not " << wanted[i]);
    CHECK(std::abs(got[i] - wanted[i]) <= tolerance);
  }
}
