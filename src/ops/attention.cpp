// Causal attention, per sequence and head:  S = Q K^T / sqrt(dh), P = softmax of each row up to the diagonal, O = P V.
//   dV = P^T dO,  dP = dO V^T,  dS = P (dP - rowsum(P dP)),  dQ = dS K / sqrt(dh),  dK = dS^T Q / sqrt(dh).
// Worked in blocks of rows; blocks above the diagonal are never computed. P is kept for the backward.
#include <cmath>

#include "core/text.h"
#include "normlab/ops.h"
#include "ops/rows.h"

namespace normlab {

namespace {

constexpr int64_t kBlock = 32;  // rows of Q, and rows of K and V packed together

class Attention final : public Op {
 public:
  Attention(int64_t batch, int64_t time, int64_t heads, int64_t kv_heads, int64_t head_width, bool bf16)
      : batch_(batch),
        time_(time),
        heads_(heads),
        kv_heads_(kv_heads),
        width_(head_width),
        bf16_(bf16),
        scale_(static_cast<real>(1 / std::sqrt(static_cast<double>(head_width)))) {}
  std::string_view name() const override { return "attention"; }
  Needs needs() const override { return Needs::inputs; }
  int64_t saved() const override { return batch_ * heads_ * time_ * time_; }  // P
  int64_t scratch() const override { return batch_ * kv_heads_ * head_scratch(); }
  double flops() const override {  // two products over the causal half
    const auto t = static_cast<double>(time_);
    return 2.0 * 2.0 * static_cast<double>(batch_ * heads_ * width_) * t * (t + 1) / 2;
  }

  void forward(const OpContext& c) const override {
    const ConstView q = c.in(0), k = c.in(1), v = c.in(2);
    const View out = c.out();
    parallel_for(batch_ * kv_heads_, [&](int64_t item) {
      const int64_t b = item / kv_heads_, kv = item % kv_heads_;
      real* columns = c.scratch() + item * head_scratch();  // K^T in panels
      real* blocks = columns + columns_size();              // V, each block of rows in panels
      kernels().pack_transposed(width_, time_, at(k, b, kv), k.stride, columns);
      pack_blocks(at(v, b, kv), v.stride, blocks);
      for (int64_t h = kv * group(); h < (kv + 1) * group(); ++h) {
        real* p = probabilities(c, b, h);
        for (int64_t i = 0; i < time_; i += kBlock) {
          const int64_t end = std::min(time_, i + kBlock);
          kernels().gemm(end - i, end, width_, at(q, b, h) + i * q.stride, q.stride, columns, p + i * time_, time_,
                         nullptr, false);
          for (int64_t t = i; t < end; ++t) {
            real* row = p + t * time_;
            kernels().scale(t + 1, scale_, row, row, false);
            kernels().softmax(t + 1, row);
            if (bf16_) kernels().round_bf16(t + 1, row);  // P and dS are operands of products
            std::fill(row + t + 1, row + end, real(0));
          }
          times_blocks(p + i * time_, end - i, end, blocks, at(out, b, h) + i * out.stride, out.stride, false);
        }
      }
    });
  }

  void backward(const OpContext& c) const override {
    const ConstView q = c.in(0), k = c.in(1), v = c.in(2), dout = c.grad_out();
    const bool wants_q = c.wants(0), wants_k = c.wants(1), wants_v = c.wants(2);
    const Gradient dq = wants_q ? c.grad(0) : Gradient{}, dk = wants_k ? c.grad(1) : Gradient{},
                   dv = wants_v ? c.grad(2) : Gradient{};
    parallel_for(batch_ * kv_heads_, [&](int64_t item) {
      const int64_t b = item / kv_heads_, kv = item % kv_heads_;
      real* columns = c.scratch() + item * head_scratch();  // V^T in panels
      real* blocks = columns + columns_size();              // K, each block of rows in panels
      real* ds = blocks + blocks_size();                    // (T, T)
      kernels().pack_transposed(width_, time_, at(v, b, kv), v.stride, columns);
      pack_blocks(at(k, b, kv), k.stride, blocks);
      for (int64_t h = kv * group(); h < (kv + 1) * group(); ++h) {
        const bool later_head = h > kv * group();  // heads that share k and v add up
        const real* p = probabilities(c, b, h);
        for (int64_t i = 0; i < time_; i += kBlock) {
          const int64_t end = std::min(time_, i + kBlock);
          kernels().gemm(end - i, end, width_, at(dout, b, h) + i * dout.stride, dout.stride, columns, ds + i * time_,
                         time_, nullptr, false);
          for (int64_t t = i; t < end; ++t) {
            real* row = ds + t * time_;
            kernels().softmax_backward(t + 1, p + t * time_, row, row);
            kernels().scale(t + 1, scale_, row, row, false);
            if (bf16_) kernels().round_bf16(t + 1, row);
            std::fill(row + t + 1, row + end, real(0));
          }
          if (!wants_q) continue;
          times_blocks(ds + i * time_, end - i, end, blocks, at(dq.view, b, h) + i * dq.view.stride, dq.view.stride,
                       dq.accumulate);
        }
        for (int64_t j = 0; j < time_; j += kBlock) {
          const int64_t n = std::min(kBlock, time_ - j);
          if (wants_k) {
            kernels().gemm_transposed(n, width_, time_ - j, ds + j * time_ + j, time_, at(q, b, h) + j * q.stride,
                                      q.stride, at(dk.view, b, kv) + j * dk.view.stride, dk.view.stride,
                                      dk.accumulate || later_head);
          }
          if (wants_v) {
            kernels().gemm_transposed(n, width_, time_ - j, p + j * time_ + j, time_, at(dout, b, h) + j * dout.stride,
                                      dout.stride, at(dv.view, b, kv) + j * dv.view.stride, dv.view.stride,
                                      dv.accumulate || later_head);
          }
        }
      }
    });
  }

 private:
  int64_t group() const { return heads_ / kv_heads_; }
  int64_t columns_size() const { return kernels().packed_size(width_, time_); }
  int64_t block_size() const { return kernels().packed_size(kBlock, width_); }
  int64_t blocks_size() const { return (time_ + kBlock - 1) / kBlock * block_size(); }
  int64_t head_scratch() const { return columns_size() + blocks_size() + time_ * time_; }
  real* probabilities(const OpContext& c, int64_t b, int64_t h) const {
    return c.saved() + (b * heads_ + h) * time_ * time_;
  }

  template <class T>
  T* at(const BasicView<T>& x, int64_t b, int64_t h) const {
    return x.row(b * time_) + h * width_;
  }

  void pack_blocks(const real* x, int64_t stride, real* blocks) const {
    for (int64_t j = 0; j < time_; j += kBlock) {
      kernels().pack(std::min(kBlock, time_ - j), width_, x + j * stride, stride, blocks + j / kBlock * block_size());
    }
  }

  // out (+)= a[m][k] x, x given by its packed blocks.
  void times_blocks(const real* a, int64_t m, int64_t k, const real* blocks, real* out, int64_t stride,
                    bool accumulate) const {
    for (int64_t j = 0; j < k; j += kBlock) {
      kernels().gemm(m, width_, std::min(kBlock, k - j), a + j, time_, blocks + j / kBlock * block_size(), out, stride,
                     nullptr, accumulate || j > 0);
    }
  }

  int64_t batch_, time_, heads_, kv_heads_, width_;
  bool bf16_;
  real scale_;
};

}  // namespace

Var attention(Var q, Var k, Var v, int64_t heads, int64_t kv_heads) {
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
  return g.append(std::make_unique<Attention>(s[0], s[1], heads, kv_heads, width, g.bf16()), {q, k, v}, s);
}

}  // namespace normlab
