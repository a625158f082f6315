// Looks into a model layer by layer: how large the residual stream and its branches are, how gradients reach them, what
// attention looks at. A probe records the model a second time over the same parameters, in memory of its own, and moves
// neither parameters nor running statistics: a run with probes is the run without them, to the bit.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batches.h"
#include "normlab/model.h"

namespace normlab {

// One residual sub-layer. Means are over all positions of the probing batch; README, "Layers", has the formulas.
struct ProbeRow {
  int64_t layer = 0;
  std::string sublayer;
  double stream_rms = 0, stream_max = 0, branch_rms = 0, branch_max = 0, branch_ratio = 0;
  double stream_grad = 0, grad_in = 0, grad_out = 0;
  std::optional<double> update_in, update_out, gain_mean, gain_std, attention_entropy, attention_logit_max;
  double token_similarity = 0, angular_distance = 0;
};

extern const char kLayersHeader[];
std::string layers_row(int64_t step, const ProbeRow& row);  // one line of layers.csv

class Probe {
 public:
  // The batch is fixed: `sequences` windows spread over the validation part, the same for every seed; without such a
  // part the training windows of "update 0" of this seed. `store` must outlive the probe; its values are first needed
  // by remember() or measure().
  Probe(const ModelConfig& model, ParamStore& store, const Corpus& corpus, uint64_t seed, int64_t sequences);

  double memory() const;  // bytes that measure() takes when first called, and remember()
  void remember();        // the parameters as they are now: measure() then tells how far they have moved
  std::vector<ProbeRow> measure();
  double loss_and_gradient();            // forward and backward at the store's values: mean loss of the batch, nats
  std::vector<double> gradient() const;  // then: of all trainable parameters, one after the other

  // Sequences of a probing batch for a model trained on `batch` of them.
  static int64_t sequences_for(const ModelConfig& model, int64_t batch);

 private:
  struct Group {
    std::vector<int> matrices;
  };
  Group group(const SublayerVars& s, std::initializer_list<const char*> names) const;
  double gradient_norm(const Group& g) const;
  std::optional<double> relative_update(const Group& g) const;
  void measure_stream(const SublayerVars& s, ProbeRow& row) const;
  void measure_gains(const SublayerVars& s, ProbeRow& row) const;
  void measure_attention(const SublayerVars& s, ProbeRow& row) const;

  ModelConfig model_;
  ParamStore* store_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Workspace> work_;
  Decoder decoder_;
  std::vector<int32_t> tokens_, targets_;
  std::vector<real> before_;  // all parameters at remember()
};

}  // namespace normlab
