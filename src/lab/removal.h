// What each layer of a trained model is worth: the loss with that layer left out, nothing retrained (Sun et al. 2025,
// The Curse of Depth; Li et al. 2024, Mix-LN). A layer whose removal costs nothing does nothing.
#pragma once

#include <vector>

#include "lab/run.h"

namespace normlab {

struct LayerRemoval {
  std::int64_t layer = 0;  // from 0
  double loss = 0;         // mean validation loss without it, nats
  double damage = 0;       // loss - loss of the whole model
};

struct RemovalResult {
  double whole = 0;  // loss of the whole model
  std::vector<LayerRemoval> layers;
};

// Over the validation windows that the run's own evaluations use (eval.batches). DataError where there are none or the
// data are not the run's.
RemovalResult remove_layers(const TrainedRun& run);

extern const char kRemovalHeader[];
std::string removal_row(const LayerRemoval& row);

}  // namespace normlab
