// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019) of one row, and the Adam update.

constexpr double kLargestScale =
    sizeof(real) == 4 ? 1e38 : 1e307;  // of 1 / sqrt(variance + eps): eps = 0 and a constant row give 0, not NaN

// (x - mean) / sqrt(variance + eps) from the statistics. Halves are subtracted and the scale doubled, which changes no
// bit of the result but cannot overflow, whatever finite x is.
struct Normalised {
  explicit Normalised(const real* stats) : half_high(stats[0] / 2), half_low(stats[1] / 2), scale(stats[2] * 2) {}
  real operator()(real x) const { return (multiply_add(real(0.5), x, -half_high) - half_low) * scale; }
  real half_high, half_low, scale;
};

void norm_row(int64_t n, const real* x, const real* gain, const real* bias, double eps, bool center, real* y,
              real* stats) {
  const double count = static_cast<double>(n);
  const double mean = center ? sum(n, x) / count : 0;
  const double squares = sum_of(n, [=](int64_t i) {
    const double c = static_cast<double>(x[i]) - mean;
    return c * c;
  });
  const double scale = 1 / __builtin_sqrt(squares / count + eps);
  stats[0] = static_cast<real>(mean);
  stats[1] = static_cast<real>(mean - static_cast<double>(stats[0]));
  stats[2] = static_cast<real>(scale > kLargestScale ? kLargestScale : scale);
  const Normalised normalised(stats);
  if (gain != nullptr && bias != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = multiply_add(normalised(x[i]), gain[i], bias[i]);
  } else if (gain != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = normalised(x[i]) * gain[i];
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = normalised(x[i]);
    if (bias != nullptr) axpby(n, 1, y, 1, bias, y);
  }
}

// With h = (x - mean) r and g = gain dy:  dx = r (g - mean(g) - h mean(g h)), without mean(g) for RMSNorm; dgain = h
// dy; dbias = dy.
template <class Gained>
inline void norm_row_backward_of(int64_t n, const real* x, const Gained& gained, bool center, const real* stats,
                                 const real* dy, real* dx, bool accumulate) {
  const Normalised normalised(stats);
  const double count = static_cast<double>(n);
  const real mean =
      center ? static_cast<real>(sum_of(n, [=](int64_t i) { return static_cast<double>(gained(i, dy[i])); }) / count)
             : 0;
  const real slope = static_cast<real>(
      sum_of(n,
             [=](int64_t i) { return static_cast<double>(gained(i, dy[i])) * static_cast<double>(normalised(x[i])); }) /
      count);
  const real r = stats[2];
  if (accumulate) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i)
      dx[i] = multiply_add(r, multiply_add(normalised(x[i]), -slope, gained(i, dy[i]) - mean), dx[i]);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dx[i] = r * multiply_add(normalised(x[i]), -slope, gained(i, dy[i]) - mean);
  }
}

void norm_row_backward(int64_t n, const real* x, const real* gain, bool center, const real* stats, const real* dy,
                       real* dx, bool accumulate, real* dgain, real* dbias) {
  const Normalised normalised(stats);
  if (dgain != nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) dgain[i] = multiply_add(normalised(x[i]), dy[i], dgain[i]);
  }
  if (dbias != nullptr) axpby(n, 1, dy, 1, dbias, dbias);
  // Last, because dx may be dy.
  if (gain != nullptr)
    norm_row_backward_of(
        n, x, [=](int64_t i, real d) { return gain[i] * d; }, center, stats, dy, dx, accumulate);
  else
    norm_row_backward_of(
        n, x, [](int64_t, real d) { return d; }, center, stats, dy, dx, accumulate);
}

struct AdamFactors {
  explicit AdamFactors(const AdamStep& s)
      : gradient(static_cast<real>(s.gradient_scale)),
        keep_m(static_cast<real>(s.beta1)),
        add_m(static_cast<real>(1 - s.beta1)),
        keep_v(static_cast<real>(s.beta2)),
        add_v(static_cast<real>(1 - s.beta2)),
        rate(static_cast<real>(s.lr / s.correction1)),
        root(static_cast<real>(1 / __builtin_sqrt(s.correction2))),
        eps(static_cast<real>(s.eps)),
        decay(static_cast<real>(s.lr * s.decay)) {}
  real gradient, keep_m, add_m, keep_v, add_v, rate, root, eps, decay;
};

inline real root_of(real x) {
  if constexpr (sizeof(real) == 4) return static_cast<real>(__builtin_sqrtf(static_cast<float>(x)));
  return static_cast<real>(__builtin_sqrt(x));
}

// One element: updates m and v, returns the new value.
inline real adam_value(const AdamFactors& f, real gradient, real value, real& m, real& v) {
  const real g = gradient * f.gradient;
  m = multiply_add(f.keep_m, m, f.add_m * g);
  v = multiply_add(f.keep_v, v, f.add_v * g * g);
  const real kept = multiply_add(-f.decay, value, value);
  return kept - f.rate * m / multiply_add(root_of(v), f.root, f.eps);
}

void adam(int64_t n, const AdamStep& step, const real* gradient, real* value, real* m, real* v, double* norms) {
  const AdamFactors factors(step);
  double of_values[kLanes] = {}, of_changes[kLanes] = {};
  const auto lanes = [&](int64_t first, int64_t count) {
#pragma omp simd
    for (int64_t l = 0; l < count; ++l) {
      const int64_t i = first + l;
      const real before = value[i];
      const real after = adam_value(factors, gradient[i], before, m[i], v[i]);
      value[i] = after;
      const double size = static_cast<double>(after);
      const double change = size - static_cast<double>(before);
      of_values[l] += size * size;
      of_changes[l] += change * change;
    }
  };
  int64_t first = 0;
  for (; first + kLanes <= n; first += kLanes) lanes(first, kLanes);
  lanes(first, n - first);
  norms[0] += combined(of_values);
  norms[1] += combined(of_changes);
}
