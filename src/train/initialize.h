// Initial values of all parameters.
#pragma once

#include "data/batches.h"
#include "normlab/model.h"

namespace normlab {

// Draws every parameter from the seed and then fills the learned vectors of placements that measure their start
// (Placement::measured), from one forward pass without dropout of the first update's `sequences`, `micro` of which
// norms over the batch see at a time. Moves no running statistics; the same bytes for any number of threads. Without
// `batches` nothing is measured: for models whose weights come from a file. `store` must be allocated.
void initialize(const ModelConfig& model, ParamStore& store, uint64_t seed, const Batches* batches, int64_t sequences,
                int64_t micro);

}  // namespace normlab
