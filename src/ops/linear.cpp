// y = x W^T + b.   dx = dy W,   dW += dy^T x,   db += column sums of dy.
#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

void column_sums(const ConstView& x, const ConstView* y, real* sums, bool accumulate) {
  constexpr int64_t kColumns = 64;
  parallel_for((x.cols + kColumns - 1) / kColumns, [&](int64_t block) {
    const int64_t first = block * kColumns, n = std::min(kColumns, x.cols - first);
    double total[kColumns] = {};
    for (int64_t r = 0; r < x.rows; ++r) {
      const real* a = x.row(r) + first;
      if (y == nullptr) {
        for (int64_t j = 0; j < n; ++j) total[j] += static_cast<double>(a[j]);
      } else {
        const real* b = y->row(r) + first;
        for (int64_t j = 0; j < n; ++j) total[j] += static_cast<double>(a[j]) * static_cast<double>(b[j]);
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      sums[first + j] = (accumulate ? sums[first + j] : real(0)) + static_cast<real>(total[j]);
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

  // The weight in the panels gemm reads, once for y = x W^T and once for dx = dy W.
  int64_t shared() const override { return forward_panels() + kernels().packed_size(out_, in_); }
  void prepare(const real* const* inputs, real* shared) const override {
    kernels().pack_transposed(in_, out_, inputs[1], in_, shared);
    kernels().pack(out_, in_, inputs[1], in_, shared + forward_panels());
    if (bf16_) kernels().round_bf16(Linear::shared(), shared);  // the products' copy of the fp32 master weight
  }

  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const View y = c.out();
    const real* bias = c.has(2) ? c.in(2).data : nullptr;
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      kernels().gemm(last - first, out_, in_, x.row(first), x.stride, c.shared(), y.row(first), y.stride, bias, false);
    });
  }

  void backward(const OpContext& c) const override {
    const ConstView x = c.in(0), dy = c.grad_out();
    if (c.wants(0)) {
      const Gradient dx = c.grad(0);
      for_row_blocks(dy.rows, [&](int64_t first, int64_t last) {
        kernels().gemm(last - first, in_, out_, dy.row(first), dy.stride, c.shared() + forward_panels(),
                       dx.view.row(first), dx.view.stride, nullptr, dx.accumulate);
      });
    }
    if (c.wants(1)) {
      const Gradient dw = c.grad(1);
      for_row_blocks(out_, [&](int64_t first, int64_t last) {
        kernels().gemm_transposed(last - first, in_, dy.rows, dy.data + first, dy.stride, x.data, x.stride,
                                  dw.view.row(first), dw.view.stride, dw.accumulate);
      });
    }
    if (c.wants(2)) {
      const Gradient db = c.grad(2);
      column_sums(dy, nullptr, db.view.data, db.accumulate);
    }
  }

 private:
  int64_t forward_panels() const { return kernels().packed_size(in_, out_); }
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
