// exp, tanh, erf and what is built on them, written without branches so that loops over them become vector code.
// The polynomials are our own least-squares fits, reweighted towards equal relative errors. Largest errors in float,
// measured over all exponents (tests/unit/math_test.cpp holds them); results below the smallest normal number, 1.2e-38,
// have fewer digits:
//   values, relative: exp 7e-8, tanh 1.1e-7, erf 1.7e-7, sigmoid 1.8e-7, silu 2.1e-7,
//                     gelu 4.6e-7 + 1.2e-7 x^2, gelu_tanh 2.5e-7 (1 + x^2)
//   derivatives, absolute: tanh 9e-8, erf 1.5e-7, sigmoid 6e-8, silu 1.7e-7, gelu 2.4e-7, gelu_tanh 1.8e-7
// In the double build they are libm's.

#ifdef NORMLAB_DOUBLE

inline double absolute(double x) { return __builtin_fabs(x); }
inline double exp_of(double x) { return __builtin_exp(x); }
inline double exp_of_not_positive(double x) { return __builtin_exp(x); }
inline double tanh_of(double x) { return __builtin_tanh(x); }
inline double erf_of(double x) { return __builtin_erf(x); }
inline double half_erfc(double t, double) { return 0.5 * __builtin_erfc(t); }

#else

// A comparison instead would have the compiler compute what follows for both signs.
inline float absolute(float x) { return __builtin_fabsf(x); }
inline float with_sign_of(float size, float x) {
  const uint32_t sign = __builtin_bit_cast(uint32_t, x) & 0x80000000u;
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, size) | sign);
}

// exp(x) = 2^n exp(r), n the nearest whole number to x / ln 2, exp(r) = 1 + r + r^2 P(r). Polynomials are evaluated in
// pairs: a chain of multiply_adds, each waiting for the one before, would be what the time goes into.
struct ExpParts {
  explicit ExpParts(float x) {
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest whole number in the low bits
    const float shifted = multiply_add(x, 1.44269504f, kRound);
    const float n = shifted - kRound;
    // ln 2 in two parts; the first has so few bits that n times it is exact.
    const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, x));
    const float s = r * r;
    const float p01 = multiply_add(1.6666577e-1f, r, 0.5f);
    const float p23 = multiply_add(8.3632602e-3f, r, 4.1666855e-2f);
    const float p = multiply_add(multiply_add(1.3901333e-3f, s, p23), s, p01);
    exp_r = 1.0f + multiply_add(p, s, r);
    whole = static_cast<int32_t>(__builtin_bit_cast(uint32_t, shifted) - 0x4b400000u);
  }
  float exp_r;
  int32_t whole;  // n
};

inline float power_of_two(int32_t n) { return __builtin_bit_cast(float, static_cast<uint32_t>(n + 127) << 23); }

inline float exp_of(float x) {
  const ExpParts parts(x);
  // 2^n in two factors: n reaches -150 and 128, where one alone would not be a number.
  const int32_t half = parts.whole >> 1;
  const float inside = parts.exp_r * power_of_two(half) * power_of_two(parts.whole - half);
  // Outside, the bits above mean nothing. A NaN fails both comparisons and passes.
  const float bounded = x > 89.0f ? __builtin_inff() : inside;
  return x < -104.0f ? 0.0f : bounded;
}

// For x <= 0 or NaN; 0 where the result would be below 1.6e-38, near the smallest normal number.
inline float exp_of_not_positive(float x) {
  const ExpParts parts(x);
  return x < -87.0f ? 0.0f : parts.exp_r * power_of_two(parts.whole);
}

// tanh(x) = x + x s P(s), s = x^2, below 0.625; above 1 - 2 / (exp(2 |x|) + 1).
inline float tanh_of(float x) {
  const float t = absolute(x);
  const float far = 1.0f - 2.0f / (exp_of(2.0f * t) + 1.0f);
  const float s = x * x;
  float p = -6.0969404e-3f;
  p = multiply_add(p, s, 2.0997358e-2f);
  p = multiply_add(p, s, -5.3850954e-2f);
  p = multiply_add(p, s, 1.3332770e-1f);
  p = multiply_add(p, s, -3.3333329e-1f);
  const float near = multiply_add(x * s, p, x);
  return t < 0.625f ? near : with_sign_of(far, x);
}

// erfc(t) / 2 for t >= 0, given exp(-t^2): a polynomial in 1 / (1 + 0.3 t), relative to exp(-t^2).
inline float half_erfc(float t, float exp_minus_square) {
  const float k = 1.0f / multiply_add(0.3f, t, 1.0f);
  const float k2 = k * k;
  const float p01 = multiply_add(0.170715214f, k, 0.169188006f);
  const float p23 = multiply_add(0.214925626f, k, 0.148339272f);
  const float p45 = multiply_add(0.547718339f, k, -0.094649632f);
  const float p67 = multiply_add(0.485562412f, k, -0.512276524f);
  const float high = multiply_add(multiply_add(-0.129522733f, k2, p67), k2, p45);
  const float p = multiply_add(high, k2 * k2, multiply_add(p23, k2, p01));
  return k * p * (0.5f * exp_minus_square);
}

// erf(x) = x P(x^2) below 0.85; above 1 - erfc(|x|).
inline float erf_of(float x) {
  const float t = absolute(x);
  const float s = x * x;
  const float far = 1.0f - 2.0f * half_erfc(t, exp_of(-s));
  float p = -6.3151286e-4f;
  p = multiply_add(p, s, 5.0510949e-3f);
  p = multiply_add(p, s, -2.6802548e-2f);
  p = multiply_add(p, s, 0.11282717f);
  p = multiply_add(p, s, -0.37612572f);
  p = multiply_add(p, s, 1.12837916f);
  return t < 0.85f ? x * p : with_sign_of(far, x);
}

#endif

inline real clamped(real x, real limit) {  // lets NaN pass
  x = x < -limit ? -limit : x;
  return x > limit ? limit : x;
}

// Where the distribution functions are 0 or 1 in either precision: beyond, x times 0 must be 0 also for x = inf.
constexpr real kNormalEnd = 40;
constexpr real kLogisticEnd = 1000;
constexpr real kRootHalf = real(0.70710678118654752440);          // sqrt(1 / 2)
constexpr real kTwoOverRootPi = real(1.12837916709551257390);     // 2 / sqrt(pi)
constexpr real kNormalPeak = real(0.39894228040143267794);        // 1 / sqrt(2 pi)
constexpr real kTwoRootTwoOverPi = real(1.59576912160573071176);  // 2 sqrt(2 / pi)
constexpr real kCube = real(0.044715);                            // of gelu_tanh

// Phi(x), the normal distribution, given exp(-x^2 / 2).
inline real normal(real x, real bell) {
  const real tail = half_erfc(absolute(x) * kRootHalf, bell);
  return x < 0 ? tail : 1 - tail;
}

// The logistic function of x and of -x, which is 1 minus it without the cancellation.
struct Logistic {
  explicit Logistic(real x) {
    const real e = exp_of(-absolute(x));
    const real large = 1 / (1 + e), small = e * large;
    of_x = x < 0 ? small : large;
    of_minus_x = x < 0 ? large : small;
  }
  real of_x, of_minus_x;
};

inline real gelu_tanh_argument(real x) {
  return kTwoRootTwoOverPi * x * (1 + kCube * x * x);
}  // 2 u: (1 + tanh u) / 2 = logistic(2 u)

// f(x) and f'(x), which share most of their work. Asked for the value alone, the compiler leaves the rest out.
struct ValueAndSlope {
  real value, slope;
};

// One struct per function.
struct Relu {
  static ValueAndSlope of(real x) { return {x < 0 ? 0 : x, static_cast<real>(x > 0)}; }  // lets NaN pass
};

struct Gelu {
  static ValueAndSlope of(real x) {
    const real c = clamped(x, kNormalEnd);
    const real bell = exp_of_not_positive(real(-0.5) * c * c), below = normal(c, bell);
    return {(x < c ? c : x) * below, multiply_add(c * kNormalPeak, bell, below)};
  }
};

struct GeluTanh {
  static ValueAndSlope of(real x) {
    const real c = clamped(x, kNormalEnd);
    const Logistic s(gelu_tanh_argument(c));
    return {(x < c ? c : x) * s.of_x,
            multiply_add(c * s.of_x * s.of_minus_x, kTwoRootTwoOverPi * (1 + 3 * kCube * c * c), s.of_x)};
  }
};

struct Silu {
  static ValueAndSlope of(real x) {
    const real c = clamped(x, kLogisticEnd);
    const Logistic s(c);
    return {(x < c ? c : x) * s.of_x, multiply_add(c * s.of_x, s.of_minus_x, s.of_x)};
  }
};

struct Tanh {
  static ValueAndSlope of(real x) {
    const real t = tanh_of(x);
    return {t, (1 - t) * (1 + t)};
  }
};

struct Erf {
  static ValueAndSlope of(real x) { return {erf_of(x), kTwoOverRootPi * exp_of(-x * x)}; }
};

struct Exp {
  static ValueAndSlope of(real x) {
    const real e = exp_of(x);
    return {e, e};
  }
};

struct Sigmoid {
  static ValueAndSlope of(real x) {
    const Logistic s(x);
    return {s.of_x, s.of_x * s.of_minus_x};
  }
};

struct Square {
  static ValueAndSlope of(real x) { return {x * x, 2 * x}; }
};

// Flattened: a call that stays a call cannot become vector code.
template <class F>
[[gnu::flatten]] void map(int64_t n, const real* x, real* y, real* slope) {
  if (slope == nullptr) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = F::of(x[i]).value;
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const ValueAndSlope f = F::of(x[i]);
      y[i] = f.value;
      slope[i] = f.slope;
    }
  }
}

void unary(Unary f, int64_t n, const real* x, real* y, real* slope) {
  switch (f) {
    case Unary::relu:
      return map<Relu>(n, x, y, slope);
    case Unary::gelu:
      return map<Gelu>(n, x, y, slope);
    case Unary::gelu_tanh:
      return map<GeluTanh>(n, x, y, slope);
    case Unary::silu:
      return map<Silu>(n, x, y, slope);
    case Unary::tanh:
      return map<Tanh>(n, x, y, slope);
    case Unary::erf:
      return map<Erf>(n, x, y, slope);
    case Unary::exp:
      return map<Exp>(n, x, y, slope);
    case Unary::sigmoid:
      return map<Sigmoid>(n, x, y, slope);
    case Unary::square:
      return map<Square>(n, x, y, slope);
  }
}
