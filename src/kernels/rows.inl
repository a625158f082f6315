// Sums, elementwise functions and softmax over one row.

constexpr int kLanes =
    16;  // partial sums side by side in every table, so that the order of a sum does not depend on the table

// The fixed tree that combines them.
template <class Number>
inline Number combined(Number (&lane)[kLanes]) {
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

// The sum of term(i) over 0 <= i < n; element i goes to lane i mod 16.
template <class Term>
inline double sum_of(int64_t n, const Term& term) {
  double lane[kLanes] = {};
  int64_t first = 0;
  for (; first + kLanes <= n; first += kLanes) {
#pragma omp simd
    for (int l = 0; l < kLanes; ++l) lane[l] += term(first + l);
  }
  double all[kLanes];  // a copy, because an array indexed by a variable would not stay in registers above
  for (int l = 0; l < kLanes; ++l) all[l] = lane[l];
  for (int l = 0; first + l < n; ++l) all[l] += term(first + l);
  return combined(all);
}

double sum(int64_t n, const real* x) {
  return sum_of(n, [=](int64_t i) { return static_cast<double>(x[i]); });
}

double dot(int64_t n, const real* x, const real* y) {
  return sum_of(n, [=](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(y[i]); });
}

double sum_squares(int64_t n, const real* x) { return dot(n, x, x); }

void axpby(int64_t n, real a, const real* x, real b, const real* y, real* out) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) out[i] = multiply_add(a, x[i], b * y[i]);
}

void scale(int64_t n, real a, const real* x, real* out, bool accumulate) {
  if (accumulate) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = multiply_add(a, x[i], out[i]);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = a * x[i];
  }
}

void multiply(int64_t n, const real* x, const real* y, real* out, bool accumulate) {
  if (accumulate) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = multiply_add(x[i], y[i], out[i]);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = x[i] * y[i];
  }
}

constexpr real kInfinity = real(__builtin_inf());

// exp(x - largest) over 16 numbers in place, added to the lanes.
inline void exp_block(real* x, real largest, real (&lane)[kLanes]) {
#pragma omp simd
  for (int l = 0; l < kLanes; ++l) {
    const real e = exp_of(x[l] - largest);
    x[l] = e;
    lane[l] += e;
  }
}

[[gnu::flatten]] void softmax(int64_t n, real* x) {
  const int64_t whole = n - n % kLanes, rest = n % kLanes;
  real end[kLanes];  // the last numbers, filled up with -inf, whose exp is 0
  for (int l = 0; l < kLanes; ++l) end[l] = -kInfinity;
  for (int64_t l = 0; l < rest; ++l) end[l] = x[whole + l];

  real most[kLanes];
  for (int l = 0; l < kLanes; ++l) most[l] = end[l];
  for (int64_t first = 0; first < whole; first += kLanes) {
#pragma omp simd
    for (int l = 0; l < kLanes; ++l) most[l] = x[first + l] > most[l] ? x[first + l] : most[l];
  }
  real largest = most[0];
  for (int l = 1; l < kLanes; ++l) largest = most[l] > largest ? most[l] : largest;
  if (largest == -kInfinity) {  // nothing but -inf, or NaN, which stays
    for (int64_t i = 0; i < n; ++i) x[i] = x[i] == -kInfinity ? 0 : x[i];
    return;
  }

  real lane[kLanes] = {};
  for (int64_t first = 0; first < whole; first += kLanes) exp_block(x + first, largest, lane);
  if (rest > 0) exp_block(end, largest, lane);
  for (int64_t l = 0; l < rest; ++l) x[whole + l] = end[l];
  const real share = 1 / combined(lane);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) x[i] *= share;
}

void softmax_backward(int64_t n, const real* p, const real* dp, real* ds) {
  const real mean = static_cast<real>(dot(n, p, dp));
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) ds[i] = p[i] * (dp[i] - mean);
}

void round_bf16(int64_t n, real* x) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = __builtin_bit_cast(uint32_t, static_cast<float>(x[i]));
    // Half of the last kept place, a hair less where it is even; a NaN is made quiet instead, since the carry could turn it into infinity.
    const uint32_t nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
    const uint32_t quiet = bits | 0x00400000u;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    x[i] = static_cast<real>(__builtin_bit_cast(float, (is_nan ? quiet : nearest) & 0xffff0000u));
  }
}
