// Element by element.
#include "core/rng.h"
#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

// y = a x1 + b x2;  dx1 = a dy, dx2 = b dy.
class Add final : public Op {
 public:
  Add(double a, double b) : a_(static_cast<real>(a)), b_(static_cast<real>(b)) {}
  std::string_view name() const override { return "add"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0), y = c.in(1);
    const View out = c.out();
    for_elements(x, x.dense() && y.dense() && out.dense(),
                 [&](int64_t n, int64_t r) { kernels().axpby(n, a_, x.row(r), b_, y.row(r), out.row(r)); });
  }
  void backward(const OpContext& c) const override {
    if (c.wants(0)) pass_gradient(c.grad(0), c.grad_out(), a_);
    if (c.wants(1)) pass_gradient(c.grad(1), c.grad_out(), b_);
  }

 private:
  real a_, b_;
};

// y = x1 x2;  dx1 = dy x2, dx2 = dy x1.
class Multiply final : public Op {
 public:
  std::string_view name() const override { return "multiply"; }
  void forward(const OpContext& c) const override { product(c.in(0), c.in(1), c.out(), false); }
  void backward(const OpContext& c) const override {
    if (c.wants(0)) product(c.grad_out(), c.in(1), c.grad(0).view, c.grad(0).accumulate);
    if (c.wants(1)) product(c.grad_out(), c.in(0), c.grad(1).view, c.grad(1).accumulate);
  }

 private:
  static void product(const ConstView& a, const ConstView& b, const View& out, bool accumulate) {
    for_elements(a, a.dense() && b.dense() && out.dense(),
                 [&](int64_t n, int64_t r) { kernels().multiply(n, a.row(r), b.row(r), out.row(r), accumulate); });
  }
};

// y = factor x + offset.
class Affine final : public Op {
 public:
  Affine(double factor, double offset) : factor_(static_cast<real>(factor)), offset_(static_cast<real>(offset)) {}
  std::string_view name() const override { return "affine"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const View y = c.out();
    for_elements(x, x.dense() && y.dense(), [&](int64_t n, int64_t r) {
      const real* in = x.row(r);
      real* out = y.row(r);
      for (int64_t j = 0; j < n; ++j) out[j] = factor_ * in[j] + offset_;
    });
  }
  void backward(const OpContext& c) const override { pass_gradient(c.grad(0), c.grad_out(), factor_); }

 private:
  real factor_, offset_;
};

// y = f(x);  dx = dy f'(x). The slope is kept in place of x: both come from the same exp.
class Activate final : public Op {
 public:
  Activate(Unary f, const Shape& shape) : f_(f), rows_(shape.rows()), cols_(shape.cols()) {}
  std::string_view name() const override { return "activation"; }
  Needs needs() const override { return Needs::nothing; }
  int64_t saved() const override { return rows_ * cols_; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const View y = c.out();
    for_elements(x, x.dense() && y.dense(),
                 [&](int64_t n, int64_t r) { kernels().unary(f_, n, x.row(r), y.row(r), c.saved() + r * cols_); });
  }
  void backward(const OpContext& c) const override {
    const ConstView dy = c.grad_out();
    const Gradient dx = c.grad(0);
    for_elements(dy, dy.dense() && dx.view.dense(), [&](int64_t n, int64_t r) {
      kernels().multiply(n, dy.row(r), c.saved() + r * cols_, dx.view.row(r), dx.accumulate);
    });
  }

 private:
  Unary f_;
  int64_t rows_, cols_;
};

// y = x;  dx = 0.
class Detach final : public Op {
 public:
  std::string_view name() const override { return "detach"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    for (int64_t r = 0; r < x.rows; ++r) std::copy_n(x.row(r), x.cols, c.out().row(r));
  }
  void backward(const OpContext& c) const override {
    const Gradient dx = c.grad(0);
    for (int64_t r = 0; r < dx.view.rows && !dx.accumulate; ++r) std::fill_n(dx.view.row(r), dx.view.cols, real(0));
  }
};

// Training: y = x keep / (1 - rate), keep drawn per element by (seed, op, update, sequence of the update, position,
// channel): the mask depends neither on slots nor on accumulation. Evaluation: y = x. Drawn again in backward rather
// than stored.
class Dropout final : public Op {
 public:
  Dropout(double rate, uint32_t stream) : rate_(rate), stream_(stream) {}
  std::string_view name() const override { return "dropout"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override { masked(c, c.in(0), c.out(), false); }
  void backward(const OpContext& c) const override { masked(c, c.grad_out(), c.grad(0).view, c.grad(0).accumulate); }

 private:
  void masked(const OpContext& c, const ConstView& x, const View& y, bool accumulate) const {
    const Rng rng(c.pass.seed, stream_, c.pass.update);
    const auto factor = static_cast<real>(1 / (1 - rate_));
    const int64_t first_row = c.pass.first_sequence * (x.rows / c.batch());  // T rows a sequence, or T H
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const real* in = x.row(r);
        real* out = y.row(r);
        const auto at = static_cast<uint64_t>((first_row + r) * x.cols);
        for (int64_t j = 0; j < x.cols; ++j) {
          const bool kept = !c.pass.training || rng.uniform(at + static_cast<uint64_t>(j)) >= rate_;
          const real value = kept ? (c.pass.training ? factor * in[j] : in[j]) : real(0);
          out[j] = accumulate ? out[j] + value : value;
        }
      }
    });
  }

  double rate_;
  uint32_t stream_;
};

void same_shapes(Var x, Var y, std::string_view what) {
  if (x.shape() != y.shape()) {
    x.graph->fail(str(what, " needs equal shapes, not ", x.shape().text(), " and ", y.shape().text()));
  }
}

Unary unary_of(Activation f) {
  switch (f) {
    case Activation::relu: return Unary::relu;
    case Activation::gelu: return Unary::gelu;
    case Activation::gelu_tanh: return Unary::gelu_tanh;
    case Activation::silu: return Unary::silu;
    case Activation::tanh: return Unary::tanh;
    case Activation::erf: return Unary::erf;
  }
  return Unary::relu;
}

}  // namespace

Var add(Var x, Var y, double a, double b) {
  same_shapes(x, y, "add");
  return x.graph->append(std::make_unique<Add>(a, b), {x, y}, x.shape());
}

Var multiply(Var x, Var y) {
  same_shapes(x, y, "multiply");
  return x.graph->append(std::make_unique<Multiply>(), {x, y}, x.shape());
}

Var affine(Var x, double factor, double offset) {
  return x.graph->append(std::make_unique<Affine>(factor, offset), {x}, x.shape());
}

Var activation(Var x, Activation f) {
  return x.graph->append(std::make_unique<Activate>(unary_of(f), x.shape()), {x}, x.shape());
}

Var at_least(Var x, double least) { return affine(activation(affine(x, 1, -least), Activation::relu), 1, least); }

Var detach(Var x) { return x.graph->append(std::make_unique<Detach>(), {x}, x.shape()); }

Var dropout(Var x, double rate) {
  if (rate == 0) return x;
  if (!(rate > 0 && rate < 1)) x.graph->fail(str("dropout rate must lie in [0, 1), not ", rate));
  const uint32_t stream = stream_id(str("dropout/", x.graph->path(""), x.graph->ops()));
  return x.graph->append(std::make_unique<Dropout>(rate, stream), {x}, x.shape());
}

}  // namespace normlab
