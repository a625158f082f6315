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

// Columns one after the other in groups of 16; all of a group's sums stay in registers while the rows go by.
template <class Term>
inline void column_sums_of(int64_t rows, int64_t columns, const Term& term, real* sums, bool accumulate) {
  for (int64_t first = 0; first < columns; first += kLanes) {
    const int n = static_cast<int>(columns - first < kLanes ? columns - first : kLanes);
    double total[kLanes] = {};
    if (n == kLanes) {
      for (int64_t r = 0; r < rows; ++r) {
#pragma omp simd
        for (int l = 0; l < kLanes; ++l) total[l] += term(r, first + l);
      }
    } else {
      for (int64_t r = 0; r < rows; ++r)
        for (int l = 0; l < n; ++l) total[l] += term(r, first + l);
    }
    for (int l = 0; l < n; ++l) sums[first + l] = (accumulate ? sums[first + l] : 0) + static_cast<real>(total[l]);
  }
}

void column_sums(int64_t rows, int64_t columns, const real* x, int64_t ldx, const real* y, int64_t ldy, real* sums,
                 bool accumulate) {
  if (y == nullptr)
    column_sums_of(
        rows, columns, [=](int64_t r, int64_t j) { return static_cast<double>(x[r * ldx + j]); }, sums, accumulate);
  else
    column_sums_of(
        rows, columns,
        [=](int64_t r, int64_t j) { return static_cast<double>(x[r * ldx + j]) * static_cast<double>(y[r * ldy + j]); },
        sums, accumulate);
}

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
