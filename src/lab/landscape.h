// How smooth the loss is along the way of a training run: bands of the loss, and of the gradient's change, over steps
// of several lengths against the gradient (Santurkar et al. 2018, How Does Batch Normalization Help Optimization?,
// section 3). There the lengths are multiples of the learning rate of SGD; here they are multiples of the length of the
// update that the run just made, so that the bands of other optimizers mean the same: the two agree for plain SGD on
// the probing batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/probe.h"

namespace normlab {

// One point of the way. Losses in nats per token, on the probing batch; changes are |g(theta) - g(theta - t g)|.
struct LandscapeRow {
  std::int64_t step = 0;
  double loss = 0, loss_low = 0, loss_high = 0;
  double gradient_norm = 0, change_low = 0, change_high = 0;
  double smoothness = 0;  // the largest change / (t |g|): the effective beta of the paper; less is smoother
};

extern const char kLandscapeHeader[];
std::string landscape_row(const LandscapeRow& row);

// Steps of 1/2, 1, 2 and 4 times `length` (of the update) against the gradient, from the values in `store`, which are
// put back to the bit. All but loss and gradient norm are nan where the gradient is 0 or not finite, or a loss on the way is not.
LandscapeRow landscape(Probe& probe, ParamStore& store, double length);

}  // namespace normlab
