// loss = sum over valid targets of (log sum exp(z) - z[target]), in nats;  dz = (softmax(z) - onehot(target)) dloss, 0
// on ignored rows.
#include <cmath>

#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

class CrossEntropy final : public Op {
 public:
  explicit CrossEntropy(int64_t rows) : rows_(rows) {}
  std::string_view name() const override { return "cross_entropy"; }
  int64_t saved() const override { return 2 * rows_; }  // of each row the largest logit, then log sum exp(z - largest)
  int64_t scratch() const override { return rows_; }    // loss of each row

  void forward(const OpContext& c) const override {
    const ConstView z = c.in(0);
    check_targets(c.pass.targets, z.rows, z.cols);
    real* losses = c.scratch();
    for_row_blocks(z.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const int32_t target = c.pass.targets[r];
        if (target < 0) {
          losses[r] = 0;
          continue;
        }
        const real* row = z.row(r);
        const LogSumExp z_sum = log_sum_exp(z.cols, row);
        c.saved()[r] = static_cast<real>(z_sum.largest);
        c.saved()[rows_ + r] = static_cast<real>(z_sum.rest);
        losses[r] = static_cast<real>(z_sum.rest + (z_sum.largest - static_cast<double>(row[target])));
      }
    });
    *c.out().data = static_cast<real>(kernels().sum(z.rows, losses));
  }

  void backward(const OpContext& c) const override {
    const ConstView z = c.in(0);
    const Gradient dz = c.grad(0);
    const real dloss = *c.grad_out().data;
    for_row_blocks(z.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const int32_t target = c.pass.targets[r];
        real* to = dz.view.row(r);
        if (target < 0) {
          if (!dz.accumulate) std::fill(to, to + z.cols, real(0));
          continue;
        }
        const real* row = z.row(r);
        const real largest = c.saved()[r], log_sum = c.saved()[rows_ + r];
        for (int64_t j = 0; j < z.cols; ++j) {
          const real slope = dloss * (std::exp((row[j] - largest) - log_sum) - (j == target ? real(1) : real(0)));
          to[j] = (dz.accumulate ? to[j] : real(0)) + slope;
        }
      }
    });
  }

 private:
  // What a corpus delivers was checked when it was read; this holds for whoever brings targets of their own, before a
  // row is read outside its ends.
  static void check_targets(const int32_t* targets, int64_t rows, int64_t vocabulary) {
    for (int64_t r = 0; r < rows; ++r) {
      if (targets[r] >= -1 && targets[r] < vocabulary) continue;
      throw DataError(str("target ", targets[r], " at position ", r, ": expected 0 to ", vocabulary - 1,
                          ", or -1 for a position that takes no part"));
    }
  }

  int64_t rows_;
};

}  // namespace

Var cross_entropy(Var logits) {
  if (logits.shape().rank() != 3) logits.graph->fail(str("cross entropy needs (B, T, V), not ", logits.shape().text()));
  return logits.graph->append(std::make_unique<CrossEntropy>(logits.shape().rows()), {logits}, {1});
}

}  // namespace normlab
