// Rows of tables added to the residual stream: tokens, learned positions, sinusoids.
#include <cmath>

#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

// y[r] = table[token[r]];  dtable[v] += sum of dy[r] over the rows with token v, in row order.
class Embedding final : public Op {
 public:
  std::string_view name() const override { return "embedding"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView table = c.in(0);
    const View y = c.out();
    // As for targets: a corpus was checked when it was read, tokens from elsewhere are checked here.
    for (int64_t r = 0; r < y.rows; ++r) {
      const int32_t token = c.pass.tokens[r];
      if (token >= 0 && token < table.rows) continue;
      throw DataError(str("token ", token, " at position ", r, ": expected 0 to ", table.rows - 1));
    }
    for_row_blocks(y.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const real* row = table.row(c.pass.tokens[r]);
        std::copy(row, row + table.cols, y.row(r));
      }
    });
  }
  void backward(const OpContext& c) const override {
    const ConstView dy = c.grad_out();
    const Gradient dt = c.grad(0);
    if (!dt.accumulate) std::fill(dt.view.data, dt.view.data + dt.view.rows * dt.view.stride, real(0));
    for (int64_t r = 0; r < dy.rows; ++r) {
      kernels().scale(dy.cols, real(1), dy.row(r), dt.view.row(c.pass.tokens[r]), true);
    }
  }
};

// y[b, t] = x[b, t] + table[t];  dtable[t] += sum over b of dy[b, t].
class AddPositions final : public Op {
 public:
  std::string_view name() const override { return "add_positions"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0), table = c.in(1);
    const View y = c.out();
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        kernels().axpby(x.cols, real(1), x.row(r), real(1), table.row(r % c.time()), y.row(r));
      }
    });
  }
  void backward(const OpContext& c) const override {
    const ConstView dy = c.grad_out();
    if (c.wants(0)) pass_gradient(c.grad(0), dy);
    if (!c.wants(1)) return;
    const Gradient dt = c.grad(1);
    if (!dt.accumulate) std::fill(dt.view.data, dt.view.data + dt.view.rows * dt.view.stride, real(0));
    for (int64_t r = 0; r < dy.rows; ++r) {
      kernels().scale(dy.cols, real(1), dy.row(r), dt.view.row(r % c.time()), true);
    }
  }
};

// y[b, t, 2i] = x + sin(t / 10000^(2i / C)), y[b, t, 2i + 1] = x + cos(same). Vaswani et al. 2017, section 3.5.
class AddSinusoids final : public Op {
 public:
  AddSinusoids(int64_t time, int64_t width) : table_(static_cast<std::size_t>(time * width)) {
    for (int64_t t = 0; t < time; ++t) {
      for (int64_t j = 0; j < width; ++j) {
        const double angle =
            static_cast<double>(t) / std::pow(10000.0, static_cast<double>(j / 2 * 2) / static_cast<double>(width));
        table_[static_cast<std::size_t>(t * width + j)] =
            static_cast<real>(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
      }
    }
  }
  std::string_view name() const override { return "add_sinusoids"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const View y = c.out();
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        kernels().axpby(x.cols, real(1), x.row(r), real(1), table_.data() + (r % c.time()) * x.cols, y.row(r));
      }
    });
  }
  void backward(const OpContext& c) const override { pass_gradient(c.grad(0), c.grad_out()); }

 private:
  std::vector<real> table_;  // (T, C)
};

}  // namespace

Var embedding(Graph& g, Var table) {
  if (table.shape().rank() != 2) g.fail(str("embedding needs a (V, C) table, not ", table.shape().text()));
  return g.append(std::make_unique<Embedding>(), {table}, {g.batch(), g.time(), table.shape()[1]});
}

Var add_positions(Var x, Var table) {
  Graph& g = *x.graph;
  if (table.shape().rank() != 2 || table.shape()[0] < g.time() || table.shape()[1] != x.shape().cols()) {
    g.fail(str("positions need a (>= ", g.time(), ", ", x.shape().cols(), ") table, not ", table.shape().text()));
  }
  return g.append(std::make_unique<AddPositions>(), {x, table}, x.shape());
}

Var add_sinusoids(Var x) {
  return x.graph->append(std::make_unique<AddSinusoids>(x.graph->time(), x.shape().cols()), {x}, x.shape());
}

}  // namespace normlab
