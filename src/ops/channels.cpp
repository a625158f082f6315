// Vectors along the last dimension: y[r][j] = x[r][j] g[j] and y[r][j] = x[r][j] + b[j].
#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

// dx = dy g;  dg[j] += sum over rows of dy x.
class ScaleChannels final : public Op {
 public:
  std::string_view name() const override { return "scale_channels"; }
  void forward(const OpContext& c) const override { scaled(c.in(0), c.in(1).data, c.out(), false); }
  void backward(const OpContext& c) const override {
    const ConstView x = c.in(0), dy = c.grad_out();
    if (c.wants(0)) scaled(dy, c.in(1).data, c.grad(0).view, c.grad(0).accumulate);
    if (c.wants(1)) column_sums(dy, &x, c.grad(1).view.data, c.grad(1).accumulate);
  }

 private:
  static void scaled(const ConstView& x, const real* gain, const View& y, bool accumulate) {
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) kernels().multiply(x.cols, x.row(r), gain, y.row(r), accumulate);
    });
  }
};

// dx = dy;  db[j] += sum over rows of dy.
class ShiftChannels final : public Op {
 public:
  std::string_view name() const override { return "shift_channels"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const real* bias = c.in(1).data;
    const View y = c.out();
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) kernels().axpby(x.cols, real(1), x.row(r), real(1), bias, y.row(r));
    });
  }
  void backward(const OpContext& c) const override {
    if (c.wants(0)) pass_gradient(c.grad(0), c.grad_out());
    if (c.wants(1)) column_sums(c.grad_out(), nullptr, c.grad(1).view.data, c.grad(1).accumulate);
  }
};

void check(Var x, Var vector, std::string_view what) {
  if (vector.shape() != Shape{x.shape().cols()}) {
    x.graph->fail(
        str(what, " of ", x.shape().text(), " must be (", x.shape().cols(), "), not ", vector.shape().text()));
  }
}

}  // namespace

Var scale_channels(Var x, Var gain) {
  if (!gain) return x;
  check(x, gain, "gain");
  return x.graph->append(std::make_unique<ScaleChannels>(), {x, gain}, x.shape());
}

Var shift_channels(Var x, Var bias) {
  if (!bias) return x;
  check(x, bias, "bias");
  return x.graph->append(std::make_unique<ShiftChannels>(), {x, bias}, x.shape());
}

}  // namespace normlab
