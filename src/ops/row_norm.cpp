// Fused LayerNorm and RMSNorm over the last dimension. With xhat = (x - mean) r, r = 1 / sqrt(mean((x - mean)^2) +
// eps), g = gain dy:
//   LayerNorm  dx = r (g - mean(g) - xhat mean(g xhat)),   RMSNorm  dx = r (g - xhat mean(g xhat)),   dgain = sum dy
//   xhat, dbias = sum dy.
#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

class RowNorm final : public Op {
 public:
  RowNorm(const Shape& shape, bool has_gain, bool has_bias, double eps, bool centered)
      : rows_(shape.rows()),
        cols_(shape.cols()),
        has_gain_(has_gain),
        has_bias_(has_bias),
        eps_(eps),
        centered_(centered) {}
  std::string_view name() const override { return centered_ ? "layer_norm" : "rms_norm"; }
  int64_t saved() const override { return 3 * rows_; }  // mean (two parts) and 1 / std of each row
  // Gains' and biases' gradients are summed per chunk of rows, then over the chunks in order.
  int64_t scratch() const override { return chunks() * 2 * cols_; }

  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const View y = c.out();
    const real* b = has_bias_ ? c.in(has_gain_ ? 2 : 1).data : nullptr;
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for_even_rows(x, first, last, [&](int64_t row, int64_t rows) {
        kernels().norm_rows(rows_of(c, row, rows), b, eps_, y.row(row), spacing(y));
      });
    });
  }

  void backward(const OpContext& c) const override {
    const ConstView x = c.in(0), dy = c.grad_out();
    const Gradient dx = c.wants(0) ? c.grad(0) : Gradient{};
    real* partial = c.scratch();
    parallel_for(chunks(), [&](int64_t chunk) {
      real* dgain = partial + chunk * 2 * cols_;
      real* dbias = dgain + cols_;
      std::fill(dgain, dgain + 2 * cols_, real(0));
      for_even_rows(x, chunk * kChunk, std::min(rows_, (chunk + 1) * kChunk), [&](int64_t row, int64_t rows) {
        kernels().norm_rows_backward(rows_of(c, row, rows), dy.row(row), spacing(dy),
                                     c.wants(0) ? dx.view.row(row) : nullptr, c.wants(0) ? spacing(dx.view) : 0,
                                     dx.accumulate, has_gain_ ? dgain : nullptr, has_bias_ ? dbias : nullptr);
      });
    });
    const int bias = has_gain_ ? 2 : 1;
    if (has_gain_ && c.wants(1)) combine(partial, c.grad(1));
    if (has_bias_ && c.wants(bias)) combine(partial + cols_, c.grad(bias));
  }

 private:
  static constexpr int64_t kChunk = 256;  // rows
  int64_t chunks() const { return (rows_ + kChunk - 1) / kChunk; }
  NormRows rows_of(const OpContext& c, int64_t row, int64_t rows) const {
    const ConstView x = c.in(0);
    return {rows, cols_, x.row(row), spacing(x), has_gain_ ? c.in(1).data : nullptr, centered_, c.saved() + 3 * row};
  }
  void combine(const real* partial, const Gradient& to) const {
    for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
      kernels().scale(cols_, real(1), partial + chunk * 2 * cols_, to.view.data, to.accumulate || chunk > 0);
    }
  }

  int64_t rows_, cols_;
  bool has_gain_, has_bias_;
  double eps_;
  bool centered_;
};

}  // namespace

Var row_norm(Var x, Var gain, Var bias, double eps, bool centered) {
  Graph& g = *x.graph;
  const Shape wanted{x.shape().cols()};
  std::vector<Var> inputs = {x};
  for (const Var v : {gain, bias}) {
    if (!v) continue;
    if (v.shape() != wanted)
      g.fail(str("gain and bias of ", x.shape().text(), " must be ", wanted.text(), ", not ", v.shape().text()));
    inputs.push_back(v);
  }
  return g.append(std::make_unique<RowNorm>(x.shape(), static_cast<bool>(gain), static_cast<bool>(bias), eps, centered),
                  inputs, x.shape());
}

}  // namespace normlab
