// Sums, elementwise functions and softmax over one row.

constexpr int kLanes =
    16;  // partial sums side by side in every table, so that the order of a sum does not depend on the table

constexpr int kWide = sizeof(Doubles) / sizeof(double);

// The fixed tree that combines them: lane l with lane l + 8, then l + 4, and so on.
template <int Half = kLanes / 2>
inline double combined(double (&lane)[kLanes]) {
  for (int l = 0; l < Half; ++l) lane[l] += lane[l + Half];
  if constexpr (Half > 1) return combined<Half / 2>(lane);
  return lane[0];
}

// 16 lanes in registers.
struct Lanes {
  Doubles part[kLanes / kWide] = {};

  double total() const {
    Doubles sum[kLanes / kWide];
#pragma GCC unroll 16
    for (int v = 0; v < kLanes / kWide; ++v) sum[v] = part[v];
#pragma GCC unroll 16
    for (int half = kLanes / kWide / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
      for (int v = 0; v < half; ++v) sum[v] += sum[v + half];
    }
    double lane[kWide];
    __builtin_memcpy(lane, sum, sizeof lane);
#pragma GCC unroll 16
    for (int half = kWide / 2; half > 0; half /= 2) {
#pragma GCC unroll 16
      for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
    }
    return lane[0];
  }

  // The same after the numbers of a last, incomplete row of lanes: add(lane, l) adds number l to its lane.
  template <class Add>
  double total_with(int64_t rest, const Add& add) const {
    double lane[kLanes];
    __builtin_memcpy(lane, part, sizeof lane);
    for (int64_t l = 0; l < rest; ++l) add(l, lane[l]);
    return combined(lane);
  }
};

template <class T>
struct WithoutReference {};
template <class T>
struct WithoutReference<T&> {
  using Type = T;
};
template <class T>
using Plain = typename WithoutReference<T>::Type;

template <class Number>
inline Number number_at(const real* from) {
  if constexpr (sizeof(Number) == sizeof(double))
    return static_cast<double>(*from);
  else
    return doubles_at(from);
}

// The sum over 0 <= i < n of what add(i, lane) adds to the lane of i, which is i mod 16. `lane` is one double, or a
// vector of them for as many i.
template <class Add>
inline double sum_of(int64_t n, const Add& add) {
  Lanes sum;
  int64_t first = 0;
  for (; first + kLanes <= n; first += kLanes) {
#pragma GCC unroll 16
    for (int v = 0; v < kLanes / kWide; ++v) add(first + v * kWide, sum.part[v]);
  }
  if (first == n) return sum.total();
  return sum.total_with(n - first, [&](int64_t l, double& lane) { add(first + l, lane); });
}

double sum(int64_t n, const real* x) {
  return sum_of(n, [=](int64_t i, auto& lane) { lane += number_at<Plain<decltype(lane)>>(x + i); });
}

double dot(int64_t n, const real* x, const real* y) {
  return sum_of(n, [=](int64_t i, auto& lane) {
    using Number = Plain<decltype(lane)>;
    lane = multiply_add(number_at<Number>(x + i), number_at<Number>(y + i), lane);
  });
}

double sum_squares(int64_t n, const real* x) {
  return sum_of(n, [=](int64_t i, auto& lane) {
    const auto value = number_at<Plain<decltype(lane)>>(x + i);
    lane = multiply_add(value, value, lane);
  });
}

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
    // Half of the last kept place, a hair less where it is even; a NaN is made quiet instead, since the carry could
    // turn it into infinity.
    const uint32_t nearest = bits + 0x7fffu + ((bits >> 16) & 1u);
    const uint32_t quiet = bits | 0x00400000u;
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    x[i] = static_cast<real>(__builtin_bit_cast(float, (is_nan ? quiet : nearest) & 0xffff0000u));
  }
}
