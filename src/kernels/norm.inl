// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019) of rows, and the Adam update.

constexpr double kLargestScale =
    sizeof(real) == 4 ? 1e38 : 1e307;  // of 1 / sqrt(variance + eps): eps = 0 and a constant row give 0, not NaN

// (x - mean) / sqrt(variance + eps) from the statistics. Halves are subtracted and the scale doubled, which changes no
// bit of the result but cannot overflow, whatever finite x is.
struct Normalised {
  explicit Normalised(const real* stats) : half_high(stats[0] / 2), half_low(stats[1] / 2), scale(stats[2] * 2) {}
  real operator()(real x) const { return (multiply_add(real(0.5), x, -half_high) - half_low) * scale; }
  real half_high, half_low, scale;
};

// Rows go in blocks: all sums first, then all that follows from them, so that no row waits for the end of another's
// sum.
constexpr int64_t kNormBlock = 8;

template <class Each>
inline void for_norm_blocks(int64_t rows, const Each& each) {
  for (int64_t first = 0; first < rows; first += kNormBlock) each(first, smaller(kNormBlock, rows - first));
}

// The statistics of `rows` rows.
inline void norm_statistics(const NormRows& r, int64_t first, int64_t rows, double eps) {
  const double count = static_cast<double>(r.n);
  double mean[kNormBlock] = {}, squares[kNormBlock];
  if (r.center)
    for (int64_t i = 0; i < rows; ++i) mean[i] = sum(r.n, r.x + (first + i) * r.ldx) / count;
  for (int64_t i = 0; i < rows; ++i) {
    const real* x = r.x + (first + i) * r.ldx;
    const double from = mean[i];
    squares[i] = !r.center ? sum_squares(r.n, x) : sum_of(r.n, [=](int64_t j, auto& lane) {
      const auto c = number_at<Plain<decltype(lane)>>(x + j) - from;
      lane = multiply_add(c, c, lane);
    });
  }
  for (int64_t i = 0; i < rows; ++i) {
    const double scale = 1 / __builtin_sqrt(squares[i] / count + eps);
    real* stats = r.stats + (first + i) * 3;
    stats[0] = static_cast<real>(mean[i]);
    stats[1] = static_cast<real>(mean[i] - static_cast<double>(stats[0]));
    stats[2] = static_cast<real>(scale > kLargestScale ? kLargestScale : scale);
  }
}

inline void normalise(int64_t n, const real* x, const Normalised& normalised, const real* gain, const real* bias,
                      real* y) {
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

void norm_rows(const NormRows& r, const real* bias, double eps, real* y, int64_t ldy) {
  for_norm_blocks(r.rows, [&](int64_t first, int64_t rows) {
    norm_statistics(r, first, rows, eps);
    for (int64_t i = first; i < first + rows; ++i)
      normalise(r.n, r.x + i * r.ldx, Normalised(r.stats + i * 3), r.gain, bias, y + i * ldy);
  });
}

// Gradients are added up in chains of 4 before they are widened, which is what takes long.
constexpr int64_t kChain = 4;

// With h = (x - mean) r and g = gain dy: the sums of g (if Center) and of g h over one row; dgain += h dy, dbias += dy.
template <bool Center, bool Gain, bool Bias>
inline void backward_sums(int64_t n, const real* x, const Normalised& normalised, const real* gain, const real* dy,
                          real* dgain, real* dbias, double& of_g, double& of_gh) {
  real chain_g[kLanes], chain_gh[kLanes];
  const auto element = [=](int64_t j, real& to_g, real& to_gh) {
    const real h = normalised(x[j]), g = Gain ? gain[j] * dy[j] : dy[j];
    if constexpr (Center) to_g += g;
    to_gh = multiply_add(g, h, to_gh);
    if constexpr (Gain) dgain[j] = multiply_add(h, dy[j], dgain[j]);
    if constexpr (Bias) dbias[j] += dy[j];
  };
  const auto add_g = [&](int64_t l, auto& lane) { lane += number_at<Plain<decltype(lane)>>(chain_g + l); };
  const auto add_gh = [&](int64_t l, auto& lane) { lane += number_at<Plain<decltype(lane)>>(chain_gh + l); };
  Lanes sum_g, sum_gh;
  int64_t j = 0;
  while (j + kLanes <= n) {
    for (int64_t l = 0; l < kLanes; ++l) chain_g[l] = chain_gh[l] = 0;
    const int64_t stop = smaller(j + kChain * kLanes, n - n % kLanes);
    for (; j < stop; j += kLanes) {
#pragma omp simd
      for (int64_t l = 0; l < kLanes; ++l) element(j + l, chain_g[l], chain_gh[l]);
    }
#pragma GCC unroll 16
    for (int v = 0; v < kLanes / kWide; ++v) {
      if constexpr (Center) add_g(v * kWide, sum_g.part[v]);
      add_gh(v * kWide, sum_gh.part[v]);
    }
  }
  const int64_t rest = n - j;
  for (int64_t l = 0; l < rest; ++l) {
    chain_g[l] = chain_gh[l] = 0;
    element(j + l, chain_g[l], chain_gh[l]);
  }
  of_g = !Center ? 0 : rest == 0 ? sum_g.total() : sum_g.total_with(rest, add_g);
  of_gh = rest == 0 ? sum_gh.total() : sum_gh.total_with(rest, add_gh);
}

// dx = r (g - mean(g) - h mean(g h)), without mean(g) for RMSNorm.
template <bool Center, bool Gain, bool Bias>
void norm_rows_backward_of(const NormRows& r, const real* dy, int64_t lddy, real* dx, int64_t lddx, bool accumulate,
                           real* dgain, real* dbias) {
  const real* gain = r.gain;
  const auto gained = [gain](int64_t j, real d) { return Gain ? gain[j] * d : d; };
  const double count = static_cast<double>(r.n);
  for_norm_blocks(r.rows, [&](int64_t first, int64_t rows) {
    double of_g[kNormBlock], of_gh[kNormBlock];
    for (int64_t i = first; i < first + rows; ++i) {
      backward_sums<Center, Gain, Bias>(r.n, r.x + i * r.ldx, Normalised(r.stats + i * 3), gain, dy + i * lddy, dgain,
                                        dbias, of_g[i - first], of_gh[i - first]);
    }
    for (int64_t i = 0; dx != nullptr && i < rows; ++i) {
      const real *x = r.x + (first + i) * r.ldx, *d = dy + (first + i) * lddy;
      real* to = dx + (first + i) * lddx;
      const Normalised normalised(r.stats + (first + i) * 3);
      const real mean = static_cast<real>(of_g[i] / count), slope = static_cast<real>(of_gh[i] / count);
      const real scale = r.stats[(first + i) * 3 + 2];
      const auto change = [=](int64_t j) { return multiply_add(normalised(x[j]), -slope, gained(j, d[j]) - mean); };
      if (accumulate) {
#pragma omp simd
        for (int64_t j = 0; j < r.n; ++j) to[j] = multiply_add(scale, change(j), to[j]);
      } else {
#pragma omp simd
        for (int64_t j = 0; j < r.n; ++j) to[j] = scale * change(j);
      }
    }
  });
}

template <bool Value>
struct Flag {
  static constexpr bool value = Value;
};

void norm_rows_backward(const NormRows& r, const real* dy, int64_t lddy, real* dx, int64_t lddx, bool accumulate,
                        real* dgain, real* dbias) {
  const auto with = [&](auto center, auto gain, auto bias) {
    norm_rows_backward_of<decltype(center)::value, decltype(gain)::value, decltype(bias)::value>(
        r, dy, lddy, dx, lddx, accumulate, dgain, dbias);
  };
  const auto with_gain = [&](auto center, auto gain) {
    dbias != nullptr ? with(center, gain, Flag<true>()) : with(center, gain, Flag<false>());
  };
  const auto with_center = [&](auto center) {
    r.gain != nullptr ? with_gain(center, Flag<true>()) : with_gain(center, Flag<false>());
  };
  r.center ? with_center(Flag<true>()) : with_center(Flag<false>());
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
