// The statistics norms are made of, over channels, time or batch:  center: x - mean(x);  rms: sqrt(mean(x^2) + eps);
// divide: x / s.
#include <cmath>

#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

constexpr int64_t kColumns = 64;  // columns that one thread sums together

// Statistics down columns run over segments of rows: one segment per sequence (time) or one in all (batch).
int64_t segment_rows(Over over, const OpContext& c, int64_t rows) { return over == Over::time ? c.time() : rows; }

// body(segment, first column, columns), side by side.
template <class Body>
void for_column_blocks(int64_t segments, int64_t cols, const Body& body) {
  const int64_t blocks = (cols + kColumns - 1) / kColumns;
  parallel_for(segments * blocks, [&](int64_t i) {
    const int64_t first = i % blocks * kColumns;
    body(i / blocks, first, std::min(kColumns, cols - first));
  });
}

// What center and rms share: which rows count, and when the running value stands in for the batch's.
class StatisticOp : public Op {
 public:
  StatisticOp(const Statistic& s, bool bf16) : s_(s), bf16_(bf16) {}

 protected:
  // The statistic as it is kept: rounded where the norm is computed in bfloat16 throughout.
  double kept(double value) const {
    auto rounded = static_cast<real>(value);
    if (bf16_) kernels().round_bf16(1, &rounded);
    return bf16_ ? static_cast<double>(rounded) : value;
  }
  bool counts(const OpContext& c, int64_t row) const { return !s_.masked || c.pass.targets[row] >= 0; }
  int64_t valid_rows(const OpContext& c, int64_t first, int64_t last) const {
    int64_t n = 0;
    for (int64_t r = first; r < last; ++r) n += counts(c, r) ? 1 : 0;
    return n;
  }
  bool uses_running(const OpContext& c) const { return static_cast<bool>(s_.running) && !c.pass.training; }
  void move_running(const OpContext& c, int64_t column, double value) const {
    if (c.pass.again) return;
    real& state = c.state(1).data[column];
    state = static_cast<real>((1 - s_.momentum) * static_cast<double>(state) + s_.momentum * value);
  }

  Statistic s_;
  bool bf16_;
};

// y = x - mean(x);  dx = dy - mean(dy). Rows that do not count are centered too, but leave the mean alone.
class Center final : public StatisticOp {
 public:
  using StatisticOp::StatisticOp;
  std::string_view name() const override { return "center"; }
  Needs needs() const override { return Needs::nothing; }

  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const View y = c.out();
    if (s_.over == Over::channels) {
      for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
          const double mean = kernels().sum(x.cols, x.row(r)) / static_cast<double>(x.cols);
          subtract(x.cols, x.row(r), kept(mean), y.row(r));
        }
      });
      return;
    }
    const int64_t length = segment_rows(s_.over, c, x.rows);
    for_column_blocks(x.rows / length, x.cols, [&](int64_t segment, int64_t first, int64_t n) {
      const int64_t begin = segment * length, end = begin + length;
      double mean[kColumns] = {};
      if (uses_running(c)) {
        for (int64_t j = 0; j < n; ++j) mean[j] = static_cast<double>(c.in(1).data[first + j]);
      } else if (const int64_t valid = valid_rows(c, begin, end); valid > 0) {
        for (int64_t r = begin; r < end; ++r) {
          if (!counts(c, r)) continue;
          for (int64_t j = 0; j < n; ++j) mean[j] += static_cast<double>(x.row(r)[first + j]);
        }
        for (int64_t j = 0; j < n; ++j) {
          mean[j] /= static_cast<double>(valid);
          if (s_.running) move_running(c, first + j, mean[j]);
        }
      }
      for (int64_t r = begin; r < end; ++r) {
        for (int64_t j = 0; j < n; ++j) subtract(1, x.row(r) + first + j, kept(mean[j]), y.row(r) + first + j);
      }
    });
  }

  void backward(const OpContext& c) const override {
    const ConstView dy = c.grad_out();
    const Gradient dx = c.grad(0);
    if (s_.over == Over::channels) {
      for_row_blocks(dy.rows, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
          const double mean = kernels().sum(dy.cols, dy.row(r)) / static_cast<double>(dy.cols);
          add_difference(dy.cols, dy.row(r), mean, dx.view.row(r), dx.accumulate);
        }
      });
      return;
    }
    const int64_t length = segment_rows(s_.over, c, dy.rows);
    for_column_blocks(dy.rows / length, dy.cols, [&](int64_t segment, int64_t first, int64_t n) {
      const int64_t begin = segment * length, end = begin + length;
      double mean[kColumns] = {};
      if (const int64_t valid = valid_rows(c, begin, end); valid > 0 && !uses_running(c)) {
        for (int64_t r = begin; r < end; ++r) {
          for (int64_t j = 0; j < n; ++j) mean[j] += static_cast<double>(dy.row(r)[first + j]);
        }
        for (int64_t j = 0; j < n; ++j) mean[j] /= static_cast<double>(valid);
      }
      for (int64_t r = begin; r < end; ++r) {
        const double weight = counts(c, r) ? 1.0 : 0.0;
        for (int64_t j = 0; j < n; ++j) {
          add_difference(1, dy.row(r) + first + j, weight * mean[j], dx.view.row(r) + first + j, dx.accumulate);
        }
      }
    });
  }

 private:
  // The mean in two parts: a float mean of rows far from zero is off by up to 2^-24 of their offset, as much as their
  // spread can be.
  static void subtract(int64_t n, const real* x, double mean, real* y) {
    const auto high = static_cast<real>(mean);
    const auto low = static_cast<real>(mean - static_cast<double>(high));
    for (int64_t j = 0; j < n; ++j) y[j] = (x[j] - high) - low;
  }
  static void add_difference(int64_t n, const real* dy, double mean, real* dx, bool accumulate) {
    const auto m = static_cast<real>(mean);
    for (int64_t j = 0; j < n; ++j) dx[j] = (accumulate ? dx[j] : real(0)) + (dy[j] - m);
  }
};

// s = sqrt(mean(x^2) + eps);  dx = ds x / (n s), 0 where s = 0 (a zero row with eps = 0).
class Rms final : public StatisticOp {
 public:
  Rms(double eps, const Statistic& s, bool bf16) : StatisticOp(s, bf16), eps_(eps) {}
  std::string_view name() const override { return "rms"; }
  Needs needs() const override { return Needs::both; }

  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const View s = c.out();
    if (s_.over == Over::channels) {
      for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
          const double mean = kernels().sum_squares(x.cols, x.row(r)) / static_cast<double>(x.cols);
          *s.row(r) = static_cast<real>(std::sqrt(kept(mean) + eps_));
        }
      });
      return;
    }
    const int64_t length = segment_rows(s_.over, c, x.rows);
    for_column_blocks(x.rows / length, x.cols, [&](int64_t segment, int64_t first, int64_t n) {
      const int64_t begin = segment * length, end = begin + length;
      double square[kColumns] = {};
      if (uses_running(c)) {
        for (int64_t j = 0; j < n; ++j) square[j] = static_cast<double>(c.in(1).data[first + j]);
      } else if (const int64_t valid = valid_rows(c, begin, end); valid > 0) {
        for (int64_t r = begin; r < end; ++r) {
          if (!counts(c, r)) continue;
          for (int64_t j = 0; j < n; ++j) {
            const auto value = static_cast<double>(x.row(r)[first + j]);
            square[j] += value * value;
          }
        }
        for (int64_t j = 0; j < n; ++j) {
          // With one position the unbiased variance is 0 / 0: the running value stays.
          if (s_.running && valid > 1) move_running(c, first + j, square[j] / static_cast<double>(valid - 1));
          square[j] /= static_cast<double>(valid);
        }
      }
      for (int64_t j = 0; j < n; ++j) s.row(segment)[first + j] = static_cast<real>(std::sqrt(kept(square[j]) + eps_));
    });
  }

  void backward(const OpContext& c) const override {
    const ConstView x = c.in(0), ds = c.grad_out();
    const View s = c.out();
    const Gradient dx = c.grad(0);
    if (s_.over == Over::channels) {
      for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
          kernels().scale(x.cols, slope(*ds.row(r), *s.row(r), x.cols), x.row(r), dx.view.row(r), dx.accumulate);
        }
      });
      return;
    }
    const int64_t length = segment_rows(s_.over, c, x.rows);
    for_column_blocks(x.rows / length, x.cols, [&](int64_t segment, int64_t first, int64_t n) {
      const int64_t begin = segment * length, end = begin + length;
      const int64_t valid = uses_running(c) ? 0 : valid_rows(c, begin, end);
      real slopes[kColumns] = {};
      for (int64_t j = 0; j < n && valid > 0; ++j) {
        slopes[j] = slope(ds.row(segment)[first + j], s.row(segment)[first + j], valid);
      }
      for (int64_t r = begin; r < end; ++r) {
        const real weight = counts(c, r) ? real(1) : real(0);
        for (int64_t j = 0; j < n; ++j) {
          real& to = dx.view.row(r)[first + j];
          to = (dx.accumulate ? to : real(0)) + weight * slopes[j] * x.row(r)[first + j];
        }
      }
    });
  }

 private:
  static real slope(real ds, real s, int64_t n) {
    return s > real(0) ? static_cast<real>(static_cast<double>(ds) / (static_cast<double>(n) * static_cast<double>(s)))
                       : real(0);
  }
  double eps_;
};

// y = x / s;  dx = dy / s, ds = -sum(dy y) / s over all that s divides. Where s = 0 all of x is 0 (a constant row with
// eps = 0): y and the gradients are 0 there, as in the fused kernel.
class Divide final : public Op {
 public:
  explicit Divide(Over over) : over_(over) {}
  std::string_view name() const override { return "divide"; }
  Needs needs() const override { return Needs::both; }

  void forward(const OpContext& c) const override { divided(c, c.in(0), c.out(), false); }

  void backward(const OpContext& c) const override {
    const ConstView s = c.in(1), dy = c.grad_out(), y = constant(c.out());
    if (c.wants(0)) divided(c, dy, c.grad(0).view, c.grad(0).accumulate);
    if (!c.wants(1)) return;
    const Gradient ds = c.grad(1);
    const auto store = [&](int64_t row, int64_t column, double sum) {
      const auto divisor = static_cast<double>(s.row(row)[column]);
      const double value = divisor == 0 ? 0 : -sum / divisor;
      real& to = ds.view.row(row)[column];
      to = (ds.accumulate ? to : real(0)) + static_cast<real>(value);
    };
    if (over_ == Over::channels) {
      for_row_blocks(y.rows, [&](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) store(r, 0, kernels().dot(y.cols, dy.row(r), y.row(r)));
      });
      return;
    }
    const int64_t length = segment_rows(over_, c, y.rows);
    for_column_blocks(y.rows / length, y.cols, [&](int64_t segment, int64_t first, int64_t n) {
      double sum[kColumns] = {};
      for (int64_t r = segment * length; r < (segment + 1) * length; ++r) {
        for (int64_t j = 0; j < n; ++j) {
          sum[j] += static_cast<double>(dy.row(r)[first + j]) * static_cast<double>(y.row(r)[first + j]);
        }
      }
      for (int64_t j = 0; j < n; ++j) store(segment, first + j, sum[j]);
    });
  }

 private:
  static real quotient(real x, real s) { return s == real(0) ? real(0) : x / s; }

  // out (+)= x / s
  void divided(const OpContext& c, const ConstView& x, const View& out, bool accumulate) const {
    const ConstView s = c.in(1);
    const int64_t length = segment_rows(over_, c, x.rows);
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const real* in = x.row(r);
        real* to = out.row(r);
        if (over_ == Over::channels) {
          const real divisor = *s.row(r);
          for (int64_t j = 0; j < x.cols; ++j) to[j] = (accumulate ? to[j] : real(0)) + quotient(in[j], divisor);
        } else {
          const real* divisors = s.row(r / length);
          for (int64_t j = 0; j < x.cols; ++j) to[j] = (accumulate ? to[j] : real(0)) + quotient(in[j], divisors[j]);
        }
      }
    });
  }

  Over over_;
};

Shape statistic_shape(Graph& g, const Shape& x, Over over) {
  if (over == Over::channels) return x.rank() == 4 ? Shape{x[0], x[1], x[2], 1} : Shape{x[0], x[1], 1};
  if (x.rank() != 3) g.fail(str("statistics over time or batch need (B, T, C), not ", x.text()));
  return over == Over::time ? Shape{x[0], x[2]} : Shape{x[2]};
}

std::vector<Var> inputs_of(Var x, const Statistic& s) {
  Graph& g = *x.graph;
  statistic_shape(g, x.shape(), s.over);
  if (s.over == Over::batch) {
    if (x.shape().rows() < 2) g.fail("a norm over the batch needs more than one position per batch");
    g.need_whole_batch();
  }
  if (s.running && (s.over != Over::batch || s.running.shape() != Shape{x.shape().cols()})) {
    g.fail("running statistics go with Over::batch and need one value per channel");
  }
  std::vector<Var> inputs = {x};
  if (s.running) inputs.push_back(s.running);
  return inputs;
}

}  // namespace

Var center(Var x, const Statistic& s) {
  return x.graph->append(std::make_unique<Center>(s, x.graph->rounds_results()), inputs_of(x, s), x.shape());
}

Var rms(Var x, double eps, const Statistic& s) {
  return x.graph->append(std::make_unique<Rms>(eps, s, x.graph->rounds_results()), inputs_of(x, s),
                         statistic_shape(*x.graph, x.shape(), s.over));
}

Var divide(Var x, Var statistic, Over over) {
  Graph& g = *x.graph;
  const Shape wanted = statistic_shape(g, x.shape(), over);
  if (statistic.shape() != wanted)
    g.fail(str("divide needs a ", wanted.text(), " statistic, not ", statistic.shape().text()));
  return g.append(std::make_unique<Divide>(over), {x, statistic}, x.shape());
}

}  // namespace normlab
