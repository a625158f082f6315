// Rotary positions (Su et al. 2021, "RoFormer", eq. 34) in the half-split pairing of GPT-NeoX and LLaMA: within each
// head, elements i and i + dh / 2 are turned by the angle t / 10000^(2 i / dh). The gradient turns back.
#include <cmath>

#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

class Rope final : public Op {
 public:
  Rope(int64_t time, int64_t heads, int64_t head_width) : heads_(heads), half_(head_width / 2) {
    for (int64_t t = 0; t < time; ++t) {
      for (int64_t i = 0; i < half_; ++i) {
        const double angle =
            static_cast<double>(t) / std::pow(10000.0, static_cast<double>(2 * i) / static_cast<double>(head_width));
        cosine_.push_back(static_cast<real>(std::cos(angle)));
        sine_.push_back(static_cast<real>(std::sin(angle)));
      }
    }
  }
  std::string_view name() const override { return "rope"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override { turned(c, c.in(0), c.out(), real(1), false); }
  void backward(const OpContext& c) const override {
    turned(c, c.grad_out(), c.grad(0).view, real(-1), c.grad(0).accumulate);
  }

 private:
  void turned(const OpContext& c, const ConstView& x, const View& y, real direction, bool accumulate) const {
    for_row_blocks(x.rows, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const real* cosine = cosine_.data() + r % c.time() * half_;
        const real* sine = sine_.data() + r % c.time() * half_;
        for (int64_t h = 0; h < heads_; ++h) {
          const real* in = x.row(r) + 2 * h * half_;
          real* out = y.row(r) + 2 * h * half_;
          for (int64_t i = 0; i < half_; ++i) {
            const real a = in[i], b = in[i + half_], s = direction * sine[i];
            out[i] = (accumulate ? out[i] : real(0)) + (a * cosine[i] - b * s);
            out[i + half_] = (accumulate ? out[i + half_] : real(0)) + (a * s + b * cosine[i]);
          }
        }
      }
    });
  }

  int64_t heads_, half_;
  std::vector<real> cosine_, sine_;  // (T, dh / 2)
};

}  // namespace

Var rope(Var x, int64_t heads) {
  Graph& g = *x.graph;
  const int64_t width = x.shape().cols();
  if (x.shape().rank() != 3 || width % (2 * heads) != 0) {
    g.fail(
        str("rotary positions need heads of even width; width ", width, " with ", heads, " heads does not give that"));
  }
  return g.append(std::make_unique<Rope>(g.time(), heads, width / heads), {x}, x.shape());
}

}  // namespace normlab
