// A case of the gradient check recorded as a graph, with values and memory.
#pragma once

#include <memory>
#include <vector>

#include "lab/gradcheck.h"

namespace normlab {

inline constexpr uint64_t kGradcheckSeed = 20240607;

class Recording {
 public:
  // `shared`: inputs produced by an op and used twice; `frozen`: the input without a gradient, -1 = none.
  Recording(const GradcheckCase& c, bool shared, int frozen = -1);
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  const Graph& graph() const { return graph_; }
  const ParamStore& store() const { return store_; }
  const CaseInputs& inputs() const { return inputs_; }

  // The case's result, row by row.
  std::vector<real> result();

  // One forward and backward in memory full of NaN. Every gradient holds `before` at the start; backward overwrites it,
  // or adds to it.
  std::vector<real> gradients(real before, bool add);

  // Derivative of the loss along `direction`, which covers the elements of the store from `first` on.
  double difference(int64_t first, const std::vector<double>& direction, double h);

 private:
  void set_values();
  void restore_states();
  double loss();

  ParamStore store_;
  Graph graph_;
  CaseInputs inputs_;
  Var result_;
  std::unique_ptr<Workspace> work_;
  std::vector<real> start_;  // all values
  std::vector<int32_t> tokens_, targets_;
  Pass pass_;
};

}  // namespace normlab
