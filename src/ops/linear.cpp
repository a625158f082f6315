// y = x W^T + b.   dx = dy W,   dW += dy^T x,   db += column sums of dy.
#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

void column_sums(const ConstView& x, const ConstView* y, real* sums, bool accumulate) {
  constexpr int64_t kColumns = 64;
  // Rows of a split tensor are not evenly spaced; those of one group are.
  const int64_t groups = std::max(x.groups, y != nullptr ? y->groups : 1);
  const auto first_row = [&](const ConstView& v, int64_t group) {
    return v.data + group * (v.groups == groups ? v.cols : v.stride);
  };
  const auto spacing = [&](const ConstView& v) { return v.groups == groups ? v.stride : groups * v.stride; };
  parallel_for((x.cols + kColumns - 1) / kColumns, [&](int64_t block) {
    const int64_t first = block * kColumns;
    for (int64_t group = 0; group < groups; ++group) {
      kernels().column_sums(x.rows / groups, std::min(kColumns, x.cols - first), first_row(x, group) + first,
                            spacing(x), y != nullptr ? first_row(*y, group) + first : nullptr,
                            y != nullptr ? spacing(*y) : 0, sums + first, accumulate || group > 0);
    }
  });
}

namespace {

class Linear final : public Op {
 public:
  Linear(int64_t rows, int64_t out, int64_t in, bool bf16) : rows_(rows), out_(out), in_(in), bf16_(bf16) {}
  std::string_view name() const override { return "linear"; }
  double flops() const override {
    return 2.0 * static_cast<double>(rows_) * static_cast<double>(out_) * static_cast<double>(in_);
  }
  int64_t scratch() const override {
    return std::max(products(bf16_).scratch(rows_, in_), products(bf16_).scratch(rows_, out_));
  }

  // The weight in the panels gemm reads, once for y = x W^T and once for dx = dy W.
  int64_t shared() const override { return forward_panels() + products(bf16_).packed_size(out_, in_); }
  void prepare(const real* const* inputs, real* shared) const override {
    products(bf16_).pack_transposed(in_, out_, inputs[1], in_, shared);
    products(bf16_).pack(out_, in_, inputs[1], in_, shared + forward_panels());
  }

  void forward(const OpContext& c) const override {
    const real* bias = c.has(2) ? c.in(2).data : nullptr;
    times(c, c.in(0), c.shared(), c.out(), bias, false);
  }

  void backward(const OpContext& c) const override {
    const ConstView x = c.in(0), dy = c.grad_out();
    if (c.wants(0)) times(c, dy, c.shared() + forward_panels(), c.grad(0).view, nullptr, c.grad(0).accumulate);
    if (c.wants(1)) {
      const Gradient dw = c.grad(1);
      for_row_blocks(out_, [&](int64_t first, int64_t last) {
        products(bf16_).gemm_transposed(last - first, in_, dy.rows, dy.data + first, dy.stride, x.data, x.stride,
                                        dw.view.row(first), dw.view.stride, dw.accumulate);
      });
    }
    if (c.wants(2)) {
      const Gradient db = c.grad(2);
      column_sums(dy, nullptr, db.view.data, db.accumulate);
    }
  }

 private:
  int64_t forward_panels() const { return products(bf16_).packed_size(in_, out_); }

  // y (+)= x times a matrix in panels (+ bias).
  void times(const OpContext& c, const ConstView& x, const real* panels, const View& y, const real* bias,
             bool accumulate) const {
    const Products& p = products(bf16_);
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      p.gemm(last - first, y.cols, x.cols, x.row(first), x.stride, panels, y.row(first), y.stride, bias, accumulate,
             c.scratch() + p.scratch(first, x.cols));
    });
  }

  int64_t rows_, out_, in_;
  bool bf16_;
};

}  // namespace

Var linear(Var x, Var weight, Var bias) {
  Graph& g = *x.graph;
  const Shape &xs = x.shape(), &ws = weight.shape();
  if (xs.rank() != 3 || ws.rank() != 2 || xs[2] != ws[1]) {
    g.fail(str("linear needs (B, T, in) and (out, in), not ", xs.text(), " and ", ws.text()));
  }
  if (bias && bias.shape() != Shape{ws[0]}) g.fail(str("linear bias must be (", ws[0], "), not ", bias.shape().text()));
  std::vector<Var> inputs = {x, weight};
  if (bias) inputs.push_back(bias);
  return g.append(std::make_unique<Linear>(xs.rows(), ws[0], ws[1], g.bf16()), inputs, {xs[0], xs[1], ws[0]});
}

}  // namespace normlab
