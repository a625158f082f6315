// z = sum over valid targets of (log Z)^2, Z = sum over j of exp(z_j);  dz_j = 2 log Z softmax(z)_j dz, 0 on ignored
// rows.
#include <cmath>

#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

class ZLoss final : public Op {
 public:
  explicit ZLoss(int64_t rows) : rows_(rows) {}
  std::string_view name() const override { return "z_loss"; }
  int64_t saved() const override { return 2 * rows_; }  // log Z of each row in two parts, as cross_entropy keeps it
  int64_t scratch() const override { return rows_; }    // (log Z)^2 of each row

  void forward(const OpContext& c) const override {
    const ConstView z = c.in(0);
    real* squares = c.scratch();
    for_row_blocks(z.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        squares[r] = c.saved()[r] = c.saved()[rows_ + r] = 0;
        if (c.pass.targets[r] < 0) continue;
        const LogSumExp z_sum = log_sum_exp(z.cols, z.row(r));
        c.saved()[r] = static_cast<real>(z_sum.largest);
        c.saved()[rows_ + r] = static_cast<real>(z_sum.rest);
        squares[r] = static_cast<real>((z_sum.largest + z_sum.rest) * (z_sum.largest + z_sum.rest));
      }
    });
    *c.out().data = static_cast<real>(kernels().sum(z.rows, squares));
  }

  void backward(const OpContext& c) const override {
    const ConstView z = c.in(0);
    const Gradient dz = c.grad(0);
    const real dloss = *c.grad_out().data;
    for_row_blocks(z.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const bool valid = c.pass.targets[r] >= 0;
        const real* row = z.row(r);
        real* to = dz.view.row(r);
        const real largest = c.saved()[r], log_sum = c.saved()[rows_ + r], factor = 2 * (largest + log_sum) * dloss;
        for (int64_t j = 0; j < z.cols; ++j) {
          const real slope = valid ? factor * std::exp((row[j] - largest) - log_sum) : real(0);
          to[j] = (dz.accumulate ? to[j] : real(0)) + slope;
        }
      }
    });
  }

 private:
  int64_t rows_;
};

}  // namespace

Var z_loss(Var logits) {
  if (logits.shape().rank() != 3) logits.graph->fail(str("z loss needs (B, T, V), not ", logits.shape().text()));
  return logits.graph->append(std::make_unique<ZLoss>(logits.shape().rows()), {logits}, {1});
}

}  // namespace normlab
