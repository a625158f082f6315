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

struct KernelTable {
  const char* name;   // "avx512" | "avx2" | "portable"
  const char* about;  // one line for `normlab list kernels`
  bool (*supported)();

  // ---- matrix products
  // ------------------------------------------------------------------------------------------------- Every element is
  // one sum from the first k to the last, so it does not depend on where the tiles lie. B (k x n) in panels of columns,
  // as gemm reads it. `pack` takes b[k][n], `pack_transposed` takes b[n][k]. The order of a packed B belongs to the
  // table that packed it.
  int64_t (*packed_size)(int64_t k, int64_t n);  // in elements
  void (*pack)(int64_t k, int64_t n, const real* b, int64_t ldb, real* packed);
  void (*pack_transposed)(int64_t k, int64_t n, const real* b, int64_t ldb, real* packed);
  // c[m][n] = (accumulate ? c : 0) + a[m][k] b[k][n] + (bias ? bias[n] : 0). Without accumulate, c is never read.
  void (*gemm)(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* packed, real* c, int64_t ldc,
               const real* bias, bool accumulate);
  // c[m][n] = (accumulate ? c : 0) + sum over k of a[k][m] b[k][n]: weight gradients.
  void (*gemm_transposed)(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* b, int64_t ldb,
                          real* c, int64_t ldc, bool accumulate);

  // ---- rows
  // ------------------------------------------------------------------------------------------------------------
  double (*sum)(int64_t n, const real* x);                 // accumulated in double
  double (*dot)(int64_t n, const real* x, const real* y);  // products and sums in double
  double (*sum_squares)(int64_t n, const real* x);         // in double: finite for every finite row
  void (*axpby)(int64_t n, real a, const real* x, real b, const real* y,
                real* out);                                                     // out = a x + b y (out may be x or y)
  void (*scale)(int64_t n, real a, const real* x, real* out, bool accumulate);  // out (+)= a x
  void (*multiply)(int64_t n, const real* x, const real* y, real* out, bool accumulate);  // out (+)= x y
  void (*unary)(Unary f, int64_t n, const real* x, real* y);                              // y = f(x); y may be x
  void (*unary_backward)(Unary f, int64_t n, const real* x, const real* dy, real* dx,
                         bool accumulate);  // dx (+)= dy f'(x)
  // In place, largest subtracted first; n >= 1. An entry of -inf has probability 0, a row of nothing else becomes all
  // 0.
  void (*softmax)(int64_t n, real* x);
  // ds = p (dp - sum(p dp)) for one row of probabilities p; ds may be dp.
  void (*softmax_backward)(int64_t n, const real* p, const real* dp, real* ds);

  // y = gain (x - mean) / sqrt(mean((x - mean)^2) + eps) + bias over one row; center = false leaves the mean out
  // (RMSNorm). gain and bias may be null; y may be x. stats receives {mean high part, mean low part, 1 / sqrt(..)}: the
  // mean is kept in two parts so that rows far from zero lose nothing. Two passes, sums in double: no finite row
  // overflows.
  void (*norm_row)(int64_t n, const real* x, const real* gain, const real* bias, double eps, bool center, real* y,
                   real* stats);
  // dx (+)= gradient through norm_row; dgain and dbias (null where absent) are always added to. dx may be dy.
  void (*norm_row_backward)(int64_t n, const real* x, const real* gain, bool center, const real* stats, const real* dy,
                            real* dx, bool accumulate, real* dgain, real* dbias);

  // x to the nearest bfloat16, ties to even, kept as real; NaN stays NaN, overflow becomes infinity.
  void (*round_bf16)(int64_t n, real* x);

  // ---- optimizer
  // ------------------------------------------------------------------------------------------------------- One
  // Adam/AdamW update in place (Kingma & Ba 2015; eps added after the bias correction, as PyTorch does; decoupled
  // decay: Loshchilov & Hutter 2019). Returns {sum of squared new values, sum of squared changes} through `norms`
  // (added to).
  void (*adam)(int64_t n, const AdamStep& step, const real* gradient, real* value, real* m, real* v, double* norms);
};

}  // namespace normlab
