// Along the last dimension: y[r][j] = x[r][j] g[j] and y[r][j] = x[r][j] + b[j], where a single g or b serves all j;
// parts and groups of channels.
#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

// Whether the vector of an op with these inputs is one number for all channels.
bool is_number(const ConstView& vector, const ConstView& x) { return vector.cols == 1 && x.cols > 1; }

// Its gradient: sum (+)= the rows' terms, in order, in double.
template <class Term>
void number_gradient(const Gradient& sum, int64_t rows, const Term& term) {
  double all = sum.accumulate ? static_cast<double>(*sum.view.data) : 0;
  for (int64_t r = 0; r < rows; ++r) all += term(r);
  *sum.view.data = static_cast<real>(all);
}

// dx = dy g;  dg[j] += sum over rows of dy x.
class ScaleChannels final : public Op {
 public:
  std::string_view name() const override { return "scale_channels"; }
  void forward(const OpContext& c) const override { scaled(c.in(0), c.in(1), c.out(), false); }
  void backward(const OpContext& c) const override {
    const ConstView x = c.in(0), dy = c.grad_out();
    if (c.wants(0)) scaled(dy, c.in(1), c.grad(0).view, c.grad(0).accumulate);
    if (!c.wants(1)) return;
    if (is_number(c.in(1), x)) {
      number_gradient(c.grad(1), x.rows, [&](int64_t r) { return kernels().dot(x.cols, dy.row(r), x.row(r)); });
    } else {
      column_sums(dy, &x, c.grad(1).view.data, c.grad(1).accumulate);
    }
  }

 private:
  static void scaled(const ConstView& x, const ConstView& gain, const View& y, bool accumulate) {
    const bool number = is_number(gain, x);
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        if (number) {
          kernels().scale(x.cols, *gain.data, x.row(r), y.row(r), accumulate);
        } else {
          kernels().multiply(x.cols, x.row(r), gain.data, y.row(r), accumulate);
        }
      }
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
    const bool number = is_number(c.in(1), x);
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        if (number) {
          std::transform(x.row(r), x.row(r) + x.cols, y.row(r), [&](real value) { return value + *bias; });
        } else {
          kernels().axpby(x.cols, real(1), x.row(r), real(1), bias, y.row(r));
        }
      }
    });
  }
  void backward(const OpContext& c) const override {
    if (c.wants(0)) pass_gradient(c.grad(0), c.grad_out());
    if (!c.wants(1)) return;
    const ConstView dy = c.grad_out();
    if (is_number(c.in(1), dy)) {
      number_gradient(c.grad(1), dy.rows, [&](int64_t r) { return kernels().sum(dy.cols, dy.row(r)); });
    } else {
      column_sums(dy, nullptr, c.grad(1).view.data, c.grad(1).accumulate);
    }
  }
};

// y = the first channels of x;  dx = dy there, 0 elsewhere.
class FirstChannels final : public Op {
 public:
  std::string_view name() const override { return "first_channels"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const View y = c.out();
    for (int64_t r = 0; r < y.rows; ++r) std::copy_n(c.in(0).row(r), y.cols, y.row(r));
  }
  void backward(const OpContext& c) const override {
    const ConstView dy = c.grad_out();
    const Gradient dx = c.grad(0);
    for (int64_t r = 0; r < dy.rows; ++r) {
      kernels().scale(dy.cols, real(1), dy.row(r), dx.view.row(r), dx.accumulate);
      if (!dx.accumulate) std::fill(dx.view.row(r) + dy.cols, dx.view.row(r) + dx.view.cols, real(0));
    }
  }
};

// y[b][g][t w + i] = x[b][t][g w + i], for groups of w channels, or the other way; either's gradient is the other.
class RegroupChannels final : public Op {
 public:
  RegroupChannels(int64_t groups, bool gathers) : groups_(groups), gathers_(gathers) {}
  std::string_view name() const override { return gathers_ ? "gather_groups" : "scatter_groups"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override { move(c, c.in(0), c.out(), gathers_, false); }
  void backward(const OpContext& c) const override {
    move(c, c.grad_out(), c.grad(0).view, !gathers_, c.grad(0).accumulate);
  }

 private:
  void move(const OpContext& c, const ConstView& from, const View& to, bool gathers, bool accumulate) const {
    const int64_t time = c.time(), width = gathers ? from.cols / groups_ : to.cols / groups_;
    parallel_for(c.batch(), [&](int64_t b) {
      for (int64_t t = 0; t < time; ++t) {
        for (int64_t g = 0; g < groups_; ++g) {
          const real* x = gathers ? from.row(b * time + t) + g * width : from.row(b * groups_ + g) + t * width;
          real* y = gathers ? to.row(b * groups_ + g) + t * width : to.row(b * time + t) + g * width;
          kernels().scale(width, real(1), x, y, accumulate);
        }
      }
    });
  }

  int64_t groups_;
  bool gathers_;
};

void check(Var x, Var vector, std::string_view what) {
  if (vector.shape() != Shape{x.shape().cols()} && vector.shape() != Shape{1}) {
    x.graph->fail(
        str(what, " of ", x.shape().text(), " must be (", x.shape().cols(), ") or (1), not ", vector.shape().text()));
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

Var first_channels(Var x, int64_t count) {
  const Shape& in = x.shape();
  if (count < 1 || count > in.cols()) x.graph->fail(str("no first ", count, " channels of ", in.text()));
  return x.graph->append(std::make_unique<FirstChannels>(), {x},
                         in.rank() == 4 ? Shape{in[0], in[1], in[2], count} : Shape{in[0], in[1], count});
}

Var gather_groups(Var x, int64_t groups) {
  const Shape& in = x.shape();
  if (in.rank() != 3 || in[2] % groups != 0)
    x.graph->fail(str(in.text(), " does not divide into ", groups, " groups of channels"));
  return x.graph->append(std::make_unique<RegroupChannels>(groups, true), {x},
                         Shape{in[0], groups, in[1] * in[2] / groups});
}

Var scatter_groups(Var x, int64_t time) {
  const Shape& in = x.shape();
  if (in.rank() != 3 || in[2] % time != 0) x.graph->fail(str(in.text(), " does not hold ", time, " positions"));
  return x.graph->append(std::make_unique<RegroupChannels>(in[1], false), {x},
                         Shape{in[0], time, in[1] * in[2] / time});
}

}  // namespace normlab
