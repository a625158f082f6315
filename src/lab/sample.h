// Text from a trained model, token by token.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/run.h"

namespace normlab {

struct SampleOptions {
  std::string prompt;        // "" = start from the corpus's first token
  int64_t length = 400;      // tokens to add
  double temperature = 1.0;  // 0 = always the likeliest token
  uint64_t seed = 1;
};

// The prompt and what the model adds. Positions beyond the context are forgotten: the window slides.
std::string sample(const TrainedRun& run, const SampleOptions& options);

}  // namespace normlab
