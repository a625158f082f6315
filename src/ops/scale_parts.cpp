// Parts of the channels times a factor each: y[r][g w + j] = a[g] x[r][g w + j], j < w = C / G.
#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

// dx = a dy;  da[g] += sum over rows and channels of part g of dy x.
class ScaleParts final : public Op {
 public:
  explicit ScaleParts(int64_t cols) : cols_(cols) {}
  std::string_view name() const override { return "scale_parts"; }
  int64_t scratch() const override { return cols_; }
  void forward(const OpContext& c) const override { scaled(c.in(0), c.in(1), c.out(), false); }
  void backward(const OpContext& c) const override {
    const ConstView x = c.in(0), dy = c.grad_out();
    if (c.wants(0)) scaled(dy, c.in(1), c.grad(0).view, c.grad(0).accumulate);
    if (!c.wants(1)) return;
    column_sums(dy, &x, c.scratch(), false);
    const Gradient da = c.grad(1);
    const int64_t part = cols_ / da.view.cols;
    for (int64_t g = 0; g < da.view.cols; ++g) {
      const auto sum = static_cast<real>(kernels().sum(part, c.scratch() + g * part));
      da.view.data[g] = (da.accumulate ? da.view.data[g] : real(0)) + sum;
    }
  }

 private:
  void scaled(const ConstView& x, const ConstView& factors, const View& y, bool accumulate) const {
    const int64_t part = cols_ / factors.cols;
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        for (int64_t g = 0; g < factors.cols; ++g)
          kernels().scale(part, factors.data[g], x.row(r) + g * part, y.row(r) + g * part, accumulate);
      }
    });
  }
  int64_t cols_;
};

}  // namespace

Var scale_parts(Var x, Var factors) {
  const int64_t cols = x.shape().cols();
  if (factors.shape().rank() != 1 || cols % factors.shape().cols() != 0)
    x.graph->fail(str("factors ", factors.shape().text(), " do not divide the ", cols, " channels into equal parts"));
  return x.graph->append(std::make_unique<ScaleParts>(cols), {x, factors}, x.shape());
}

}  // namespace normlab
