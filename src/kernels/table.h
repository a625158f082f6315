// The kernels of one instruction set as a table of functions. Includes nothing but integers: the files that are
// compiled for AVX2 and AVX-512 include this, and an inline function of a library header compiled there could end up in
// code for every processor. Use through kernels/kernels.h.
#pragma once

#include "normlab/real.h"

namespace normlab {

// Scalar functions applied element by element. For gelu see Hendrycks & Gimpel 2016: x Phi(x), exact (erf) and by tanh.
enum class Unary { relu, gelu, gelu_tanh, silu, tanh, erf, exp, sigmoid, square };

struct AdamStep {
  double lr, beta1, beta2, eps;
  double correction1, correction2;  // 1 - beta^t, t = the number of this update, from 1
  double decay;                     // decoupled: value -= lr * decay * value; 0 = none
  double gradient_scale;            // clipping factor applied to the gradient first
};

// Matrix products. Every element is one sum from the first k to the last (gemm_transposed: of strips of 64, each summed
// so), therefore it does not depend on where the tiles lie.
struct Products {
  // B (k x n) in panels of columns, as gemm reads it: its size in elements. `pack` takes b[k][n], `pack_transposed`
  // b[n][k]. The order of a packed B belongs to the products that packed it.
  int64_t (*packed_size)(int64_t k, int64_t n);
  void (*pack)(int64_t k, int64_t n, const real* b, int64_t ldb, real* packed);
  void (*pack_transposed)(int64_t k, int64_t n, const real* b, int64_t ldb, real* packed);
  // c[m][n] = (accumulate ? c : 0) + a[m][k] b[k][n] + (bias ? bias[n] : 0). Without accumulate, c is never read.
  void (*gemm)(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* packed, real* c, int64_t ldc,
               const real* bias, bool accumulate, real* scratch);
  int64_t (*scratch)(int64_t m, int64_t k);  // elements that gemm needs: m times those of one row
  // c[m][n] = (accumulate ? c : 0) + sum over k of a[k][m] b[k][n]: weight gradients.
  void (*gemm_transposed)(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* b, int64_t ldb,
                          real* c, int64_t ldc, bool accumulate);
};
// Products of bfloat16: `pack` rounds b; a, and the operands of gemm_transposed, hold bfloat16 values already. Numbers
// below the smallest normal one count as 0, in operands and in running sums, as the processors' bfloat16 instructions
// have it (Intel 2018, BFLOAT16 Hardware Numerics Definition); all implementations give the same bits. The double build
// sums in double and keeps small numbers.

// One head of one sequence: T rows of `width` numbers each for queries, keys and values.
struct AttentionHead {
  int64_t time, width;
  real scale;    // of the scores
  real cap = 0;  // c: scores become c tanh(scale q k / c); 0: they stay scale q k
  bool bf16;     // probabilities and their gradients, operands of products, are rounded to bfloat16
  const real *q, *k, *v;
  int64_t q_stride, k_stride, v_stride;
};

// Gradient of its output in, gradients of its inputs out: null where unwanted, added to where `add` says so.
struct AttentionGradient {
  const real* dout;
  real *dq, *dk, *dv;
  int64_t dout_stride, dq_stride, dk_stride, dv_stride;
  bool add_dq, add_dk, add_dv;
};

// Rows of n numbers, each a vector to normalise; center = false leaves the mean out (RMSNorm). stats holds for each row
// {mean high part, mean low part, 1 / sqrt(..)}: the mean is kept in two parts so that rows far from zero lose nothing.
struct NormRows {
  int64_t rows, n;
  const real* x;
  int64_t ldx;
  const real* gain;
  bool center;
  real* stats;
};

struct KernelTable {
  const char* name;   // "avx512" | "avx2" | "portable"
  const char* about;  // one line for `normlab list kernels`
  bool (*supported)();

  Products products;       // of operands as they are
  Products bf16_products;  // of operands rounded to bfloat16, by instructions that every processor of this table has

  // ---- rows
  // ------------------------------------------------------------------------------------------------------------
  double (*sum)(int64_t n, const real* x);                 // accumulated in double
  double (*dot)(int64_t n, const real* x, const real* y);  // products and sums in double
  double (*sum_squares)(int64_t n, const real* x);         // in double: finite for every finite row
  // sums[j] = (accumulate ? sums[j] : 0) + sum over rows of x[r][j] y[r][j] (y null: of x[r][j]), rows in order, in
  // double.
  void (*column_sums)(int64_t rows, int64_t columns, const real* x, int64_t ldx, const real* y, int64_t ldy, real* sums,
                      bool accumulate);
  void (*axpby)(int64_t n, real a, const real* x, real b, const real* y,
                real* out);                                                     // out = a x + b y (out may be x or y)
  void (*scale)(int64_t n, real a, const real* x, real* out, bool accumulate);  // out (+)= a x
  void (*multiply)(int64_t n, const real* x, const real* y, real* out, bool accumulate);  // out (+)= x y
  // y = f(x) and, unless null, slope = f'(x); y may be x.
  void (*unary)(Unary f, int64_t n, const real* x, real* y, real* slope);

  // ---- attention of one head (kernels/attention.inl)
  // Elements of p, and of the scratch that both directions need, for T positions and heads of `width`.
  int64_t (*attention_saved)(int64_t time);
  int64_t (*attention_scratch)(int64_t time, int64_t width);
  // out[t] = sum over u <= t of softmax_u(s[t][u]) v[u], s[t][u] = scale q[t] k[u], capped. Keeps the probabilities in
  // p; null: does not keep them.
  void (*attention)(const AttentionHead& head, real* out, int64_t out_stride, real* p, real* scratch);
  // p = null: computes the probabilities again, to the same bits.
  void (*attention_backward)(const AttentionHead& head, const AttentionGradient& gradient, const real* p,
                             real* scratch);

  // y = gain (x - mean) / sqrt(mean((x - mean)^2) + eps) + bias of each row, and its statistics. gain and bias may be
  // null; y may be x. Two passes, sums in double: no finite row overflows.
  void (*norm_rows)(const NormRows& rows, const real* bias, double eps, real* y, int64_t ldy);
  // dx (+)= gradient through norm_rows; null: nobody wants it. Sums in chains of 4 products, which are added up in
  // double. dgain (present where gain is) and dbias (may be null) are always added to. dx may be dy.
  void (*norm_rows_backward)(const NormRows& rows, const real* dy, int64_t lddy, real* dx, int64_t lddx,
                             bool accumulate, real* dgain, real* dbias);

  // x to the nearest bfloat16, ties to even, kept as real; NaN stays NaN, overflow becomes infinity.
  void (*round_bf16)(int64_t n, real* x);

  // ---- optimizer
  // ------------------------------------------------------------------------------------------------------- One
  // Adam/AdamW update in place (Kingma & Ba 2015; eps added after the bias correction, as PyTorch does; decoupled
  // decay: Loshchilov & Hutter 2019). Returns {sum of squared new values, sum of squared changes} through `norms`
  // (added to).
  void (*adam)(int64_t n, const AdamStep& step, const real* gradient, real* value, real* m, real* v, double* norms);

  // `rounds` of multiply-adds that nothing holds up; returns the floating-point operations done. Its rate is the peak.
  double (*fma_chain)(int64_t rounds);
};

}  // namespace normlab
