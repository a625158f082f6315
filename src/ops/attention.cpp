// Causal attention, per sequence and head, with a = 1 / sqrt(dh) unless another scale is asked for:
//   S = a Q K^T, or c tanh(a Q K^T / c) under a cap c, P = softmax of each row up to the diagonal, O = P V.
//   dV = P^T dO,  dP = dO V^T,  dS = P (dP - rowsum(P dP)) (1 - (S / c)^2 under a cap),  dQ = a dS K,  dK = a dS^T Q.
// P is kept for the backward, the half below the diagonal only; under Plan::recompute never more than 16 rows of it
// exist.
#include <cmath>

#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

class Attention final : public Op {
 public:
  Attention(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t head_width, Scores scores, bool bf16)
      : batch_(batch),
        time_(time),
        heads_(heads),
        kv_heads_(kv_heads),
        width_(head_width),
        bf16_(bf16),
        scale_(static_cast<real>(scores.scale.value_or(1 / std::sqrt(static_cast<double>(head_width))))),
        cap_(static_cast<real>(scores.cap)) {}
  std::string_view name() const override { return "attention"; }
  int64_t saved() const override { return batch_ * heads_ * kernels().attention_saved(time_); }
  int64_t saved_at_least() const override { return 0; }
  int64_t scratch() const override { return batch_ * kv_heads_ * kernels().attention_scratch(time_, width_); }
  double flops() const override {  // two products over the causal half
    const auto t = static_cast<double>(time_);
    return 2.0 * 2.0 * static_cast<double>(batch_ * heads_ * width_) * t * (t + 1) / 2;
  }

  void forward(const OpContext& c) const override {
    const View out = c.out();
    for_heads(c, [&](int64_t b, int64_t h, real* scratch) {
      kernels().attention(head(c, b, h), at(out, b, h), out.stride, probabilities(c, b, h), scratch);
    });
  }

  void backward(const OpContext& c) const override {
    const ConstView dout = c.grad_out();
    const auto gradient_of = [&](int i) { return c.wants(i) ? c.grad(i) : Gradient{}; };
    const Gradient dq = gradient_of(0), dk = gradient_of(1), dv = gradient_of(2);
    for_heads(c, [&](int64_t b, int64_t h, real* scratch) {
      const bool later_head = h % group() > 0;  // heads that share k and v add up
      const AttentionGradient gradient{.dout = at(dout, b, h),
                                       .dq = c.wants(0) ? at(dq.view, b, h) : nullptr,
                                       .dk = c.wants(1) ? at(dk.view, b, h / group()) : nullptr,
                                       .dv = c.wants(2) ? at(dv.view, b, h / group()) : nullptr,
                                       .dout_stride = dout.stride,
                                       .dq_stride = dq.view.stride,
                                       .dk_stride = dk.view.stride,
                                       .dv_stride = dv.view.stride,
                                       .add_dq = dq.accumulate,
                                       .add_dk = dk.accumulate || later_head,
                                       .add_dv = dv.accumulate || later_head};
      kernels().attention_backward(head(c, b, h), gradient, probabilities(c, b, h), scratch);
    });
  }

 private:
  int64_t group() const { return heads_ / kv_heads_; }

  // body(sequence, head, scratch); heads that share keys and values run one after the other.
  template <class Body>
  void for_heads(const OpContext& c, const Body& body) const {
    const int64_t apart = runs_serially() ? 0 : kernels().attention_scratch(time_, width_);
    parallel_for(batch_ * kv_heads_, [&](int64_t item) {
      const int64_t first = item % kv_heads_ * group();
      for (int64_t h = first; h < first + group(); ++h) body(item / kv_heads_, h, c.scratch() + item * apart);
    });
  }

  AttentionHead head(const OpContext& c, int64_t b, int64_t h) const {
    const ConstView q = c.in(0), k = c.in(1), v = c.in(2);
    return {.time = time_,
            .width = width_,
            .scale = scale_,
            .cap = cap_,
            .bf16 = bf16_,
            .q = at(q, b, h),
            .k = at(k, b, h / group()),
            .v = at(v, b, h / group()),
            .q_stride = q.stride,
            .k_stride = k.stride,
            .v_stride = v.stride};
  }

  real* probabilities(const OpContext& c, int64_t b, int64_t h) const {
    return c.saves_memory() ? nullptr : c.saved() + (b * heads_ + h) * kernels().attention_saved(time_);
  }

  template <class T>
  T* at(const BasicView<T>& x, int64_t b, int64_t h) const {
    return x.row(b * time_) + h * width_;
  }

  int64_t batch_, time_, heads_, kv_heads_, width_;
  bool bf16_;
  real scale_, cap_;
};

}  // namespace

Var attention(Var q, Var k, Var v, int64_t heads, int64_t kv_heads, Scores scores) {
  Graph& g = *q.graph;
  const Shape &s = q.shape(), &ks = k.shape();
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0)
    g.fail(str(heads, " heads do not divide into ", kv_heads, " kv heads"));
  if (s.rank() != 3 || s[2] % heads != 0) g.fail(str("queries ", s.text(), " do not divide into ", heads, " heads"));
  const int64_t width = s[2] / heads;
  if (ks != Shape{s[0], s[1], kv_heads * width} || v.shape() != ks) {
    g.fail(str("keys and values must be (", s[0], ", ", s[1], ", ", kv_heads * width, "), not ", ks.text(), " and ",
               v.shape().text()));
  }
  return g.append(std::make_unique<Attention>(s[0], s[1], heads, kv_heads, width, scores, g.bf16()), {q, k, v}, s);
}

}  // namespace normlab
