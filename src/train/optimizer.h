// Optimizers: flat loops over chunks of the parameter slab. Chunks are cut by shape, and sums over them run in chunk
// order.
#pragma once

#include <string_view>
#include <vector>

#include "normlab/params.h"

namespace normlab {

struct OptimizerConfig {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double momentum = 0;      // sgd
  double weight_decay = 0;  // decoupled, times the scheduled rate; matrices only
};

// One chunk's update.
struct Update {
  int64_t count;
  double lr;
  double decay;           // 0 for gains, biases and other vectors
  double gradient_scale;  // clipping
  int64_t step;           // from 1
  const real* gradient;
  real* value;
  real* state[2];
  double* norms;  // added to: sum of squares of the new values, of the changes
};

struct OptimizerDef {
  std::string_view name;
  std::string_view formula;
  int states;  // slabs beside the values
  bool reads_betas, reads_momentum, reads_weight_decay;
  void (*update)(const OptimizerConfig& config, const Update& u);
};

const std::vector<OptimizerDef>& all_optimizers();
const OptimizerDef* find_optimizer(std::string_view name);

class Optimizer {
 public:
  Optimizer(ParamStore& store, const OptimizerDef& def, const OptimizerConfig& config);

  // Sums the slots' gradients, in slot order, into the first one's, and returns the norm of the result (not finite
  // where an element is not).
  double combine(const std::vector<real*>& slots);
  // One update with the combined gradient.
  struct Norms {
    double parameters, update;
  };
  Norms step(const real* gradient, double lr, double gradient_scale, int64_t step);

  // Name of the first parameter whose gradient has a non-finite element; "" where none has.
  std::string first_non_finite(const real* gradient) const;

  int states() const { return def_->states; }
  Slab& state(int i) { return states_[static_cast<std::size_t>(i)]; }  // laid out like the store's values

 private:
  struct Chunk {
    int64_t offset, count;
    bool decays;
  };
  ParamStore* store_;
  const OptimizerDef* def_;
  OptimizerConfig config_;
  std::vector<Chunk> chunks_;
  std::vector<Slab> states_;
  std::vector<double> partial_;  // two per chunk
};

}  // namespace normlab
