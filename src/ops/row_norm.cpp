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
  // Gains' and biases' gradients are summed per chunk of rows, then over the chunks in order; a third row takes a dx
  // that nobody wants.
  int64_t scratch() const override { return chunks() * 3 * cols_; }

  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const View y = c.out();
    const real *g = gain(c), *b = has_bias_ ? c.in(has_gain_ ? 2 : 1).data : nullptr;
    real* stats = c.saved();
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        kernels().norm_row(x.cols, x.row(r), g, b, eps_, centered_, y.row(r), stats + 3 * r);
      }
    });
  }

  void backward(const OpContext& c) const override {
    const ConstView x = c.in(0), dy = c.grad_out();
    const bool wants_x = c.wants(0);
    const Gradient dx = wants_x ? c.grad(0) : Gradient{};
    const real* g = gain(c);
    const real* stats = c.saved();
    real* partial = c.scratch();
    parallel_for(chunks(), [&](int64_t chunk) {
      real* dgain = partial + chunk * 3 * cols_;
      real* dbias = dgain + cols_;
      std::fill(dgain, dgain + 2 * cols_, real(0));
      for (int64_t r = chunk * kChunk; r < std::min(rows_, (chunk + 1) * kChunk); ++r) {
        kernels().norm_row_backward(x.cols, x.row(r), g, centered_, stats + 3 * r, dy.row(r),
                                    wants_x ? dx.view.row(r) : dbias + cols_, dx.accumulate,
                                    has_gain_ ? dgain : nullptr, has_bias_ ? dbias : nullptr);
      }
    });
    const int bias = has_gain_ ? 2 : 1;
    if (has_gain_ && c.wants(1)) combine(partial, c.grad(1));
    if (has_bias_ && c.wants(bias)) combine(partial + cols_, c.grad(bias));
  }

 private:
  static constexpr int64_t kChunk = 256;  // rows
  int64_t chunks() const { return (rows_ + kChunk - 1) / kChunk; }
  const real* gain(const OpContext& c) const { return has_gain_ ? c.in(1).data : nullptr; }
  void combine(const real* partial, const Gradient& to) const {
    for (int64_t chunk = 0; chunk < chunks(); ++chunk) {
      kernels().scale(cols_, real(1), partial + chunk * 3 * cols_, to.view.data, to.accumulate || chunk > 0);
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
