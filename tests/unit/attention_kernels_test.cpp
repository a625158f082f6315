// Attention of one head against the same formulas in plain loops of doubles, in every table.
#include <cmath>

#include "kernel_tables.h"

using namespace normlab;

namespace {

using Matrix = std::vector<double>;  // [time][width]

struct Head {
  std::int64_t time, width;
  double scale, cap = 0;
};

// Rows of normal numbers `stride` apart, NaN between them.
Guarded rows_of(const Head& h, std::int64_t stride, std::uint64_t seed) {
  Guarded result((h.time - 1) * stride + h.width, kNan);
  const Guarded values = normal_row(h.time * h.width, seed);
  for (std::int64_t t = 0; t < h.time; ++t)
    for (std::int64_t d = 0; d < h.width; ++d) result[t * stride + d] = values[t * h.width + d];
  return result;
}

Matrix dense(const Head& h, const Guarded& x, std::int64_t stride) {
  Matrix result;
  for (std::int64_t t = 0; t < h.time; ++t)
    for (std::int64_t d = 0; d < h.width; ++d) result.push_back(static_cast<double>(x[t * stride + d]));
  return result;
}

struct Dot {
  double value = 0, size = 0;  // size: the sum of the absolute terms
};

Dot dot(const Head& h, const Matrix& x, std::int64_t i, const Matrix& y, std::int64_t j) {
  Dot sum;
  for (std::int64_t d = 0; d < h.width; ++d) {
    const double term = x[static_cast<std::size_t>(i * h.width + d)] * y[static_cast<std::size_t>(j * h.width + d)];
    sum.value += term;
    sum.size += std::abs(term);
  }
  return sum;
}

// A result beside the sum of the absolute values of all that enters it, which its rounding errors are relative to.
struct Sum {
  Matrix value, size;
  void add(const Head& h, std::int64_t to, double factor, double factor_size, const Matrix& x, std::int64_t from) {
    for (std::int64_t d = 0; d < h.width; ++d) {
      const auto at = static_cast<std::size_t>(to * h.width + d);
      const double other = x[static_cast<std::size_t>(from * h.width + d)];
      value[at] += factor * other;
      size[at] += factor_size * std::abs(other);
    }
  }
};

struct Expected {
  Sum out, dq, dk, dv;
  double largest_score = 0;  // in absolute terms
};

// softmax by its definition; ds = p (dp - sum p dp).
Expected by_definition(const Head& h, const Matrix& q, const Matrix& k, const Matrix& v, const Matrix& dout) {
  const Sum zero{Matrix(q.size(), 0.0), Matrix(q.size(), 0.0)};
  Expected e{zero, zero, zero, zero};
  for (std::int64_t i = 0; i < h.time; ++i) {
    std::vector<double> p, slope;  // slope: ds / d(q k)
    double total = 0, mean = 0, mean_size = 0;
    for (std::int64_t j = 0; j <= i; ++j) {
      const Dot score = dot(h, q, i, k, j);
      const double s = h.scale * score.value, t = h.cap > 0 ? std::tanh(s / h.cap) : 0;
      slope.push_back(h.scale * (1 - t * t));
      total += p.emplace_back(std::exp(h.cap > 0 ? h.cap * t : s));
      e.largest_score = std::max(e.largest_score, h.scale * score.size);
    }
    for (std::int64_t j = 0; j <= i; ++j) {
      double& share = p[static_cast<std::size_t>(j)];
      share /= total;
      e.out.add(h, i, share, share, v, j);
      e.dv.add(h, j, share, share, dout, i);
      const Dot dp = dot(h, dout, i, v, j);
      mean += share * dp.value;
      mean_size += share * dp.size;
    }
    for (std::int64_t j = 0; j <= i; ++j) {
      const double share = p[static_cast<std::size_t>(j)], size = share * h.scale;
      const double ds = share * slope[static_cast<std::size_t>(j)];
      const Dot dp = dot(h, dout, i, v, j);
      e.dq.add(h, i, ds * (dp.value - mean), size * (dp.size + mean_size), k, j);
      e.dk.add(h, j, ds * (dp.value - mean), size * (dp.size + mean_size), q, i);
    }
  }
  return e;
}

struct Run {
  Guarded out, dq, dk, dv;
};

constexpr std::int64_t kApart = 5;  // between the end of a row and the next

Run run(const KernelTable& table, const Head& h, const Guarded (&x)[4], bool keep, bool bf16 = false, real before = 0) {
  const std::int64_t stride = h.width + kApart;
  const Guarded empty(x[0].size(), kNan), filled(x[0].size(), before);
  Run r{empty, empty, filled, empty};
  Guarded p(table.attention_saved(h.time)), scratch(table.attention_scratch(h.time, h.width), kNan);
  const AttentionHead head{.time = h.time,
                           .width = h.width,
                           .scale = static_cast<real>(h.scale),
                           .cap = static_cast<real>(h.cap),
                           .bf16 = bf16,
                           .q = x[0].begin(),
                           .k = x[1].begin(),
                           .v = x[2].begin(),
                           .q_stride = stride,
                           .k_stride = stride,
                           .v_stride = stride};
  const AttentionGradient gradient{.dout = x[3].begin(),
                                   .dq = r.dq.begin(),
                                   .dk = r.dk.begin(),
                                   .dv = r.dv.begin(),
                                   .dout_stride = stride,
                                   .dq_stride = stride,
                                   .dk_stride = stride,
                                   .dv_stride = stride,
                                   .add_dq = false,
                                   .add_dk = true,
                                   .add_dv = false};
  table.attention(head, r.out.begin(), stride, keep ? p.begin() : nullptr, scratch.begin());
  std::fill(scratch.begin(), scratch.begin() + scratch.size(), kNan);
  table.attention_backward(head, gradient, keep ? p.begin() : nullptr, scratch.begin());
  CHECK((r.out.intact() && r.dq.intact() && r.dk.intact() && r.dv.intact() && p.intact() && scratch.intact()));
  return r;
}

// The largest error, relative to the size of what was summed.
double largest_error(const Head& h, const Guarded& found, const Sum& expected) {
  const std::int64_t stride = h.width + kApart;
  double worst = 0;
  for (std::int64_t t = 0; t < h.time; ++t) {
    for (std::int64_t d = 0; d < h.width; ++d) {
      const auto at = static_cast<std::size_t>(t * h.width + d);
      const double error =
          std::abs(static_cast<double>(found[t * stride + d]) - expected.value[at]) / expected.size[at];
      if (!(error <= worst)) worst = error;  // lets NaN through
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("attention and its gradients are those of the definition, for any length and head width", "[kernels]") {
  for (const KernelTable* table : runnable_tables())
    for (std::int64_t time : {1, 2, 15, 16, 17, 33, 64, 70})
      for (const auto& [width, cap] : {std::pair<std::int64_t, double>{1, 0},
                                       {7, 0},
                                       {16, 0},
                                       {20, 0},
                                       {33, 0},
                                       {64, 0},
                                       {7, 0.5},
                                       {16, 2},
                                       {33, 50}}) {
        CAPTURE(table->name, time, width, cap);
        const Head h{time, width, 1 / std::sqrt(static_cast<double>(width)), cap};
        const std::int64_t stride = width + kApart;
        const Guarded x[4] = {rows_of(h, stride, 1), rows_of(h, stride, 2), rows_of(h, stride, 3),
                              rows_of(h, stride, 4)};
        const Expected e = by_definition(h, dense(h, x[0], stride), dense(h, x[1], stride), dense(h, x[2], stride),
                                         dense(h, x[3], stride));
        const Run r = run(*table, h, x, true);
        // A score carries `width` roundings of its absolute terms, and its largest is subtracted: exp turns both into
        // relative errors of p. Three more products and sums of `time` or `width` terms follow; exp itself has 2e-7.
        const double n = static_cast<double>(width + time);
        // A cap adds two products, and tanh with 1.1e-7, two roundings, of a score. Its slope, whose size is at most 1,
        // has 9e-8 of its own, and 0.77 / cap, the largest derivative of 1 - tanh^2, times the error of the score.
        const double of_score = static_cast<double>(width) + (cap > 0 ? 6 : 2);
        const double of_slope = cap > 0 ? 0.77 / cap * e.largest_score * of_score + 2 : 0;
        const double allowed = roundings(2 * (e.largest_score + 1) * of_score + of_slope + 3 * n + 20);
        CHECK(largest_error(h, r.out, e.out) <= allowed);
        CHECK(largest_error(h, r.dv, e.dv) <= allowed);
        CHECK(largest_error(h, r.dq, e.dq) <= allowed);
        CHECK(largest_error(h, r.dk, e.dk) <= allowed);
        // Nothing kept: the same bits. Gradients of k are added to what was there.
        const Run again = run(*table, h, x, false);
        for (auto part : {&Run::out, &Run::dq, &Run::dk, &Run::dv})
          for (std::int64_t t = 0; t < time; ++t)
            for (std::int64_t d = 0; d < width; ++d)
              REQUIRE((again.*part)[t * stride + d] == (r.*part)[t * stride + d]);
        const Run added = run(*table, h, x, true, false, 8);
        for (std::int64_t t = 0; t < time; ++t)
          for (std::int64_t d = 0; d < width; ++d)
            REQUIRE(
                static_cast<double>(added.dk[t * stride + d]) ==
                Approx(static_cast<double>(r.dk[t * stride + d]) + 8).margin(40 * kUnit * static_cast<double>(time)));
      }
}

TEST_CASE("attention: one key has probability 1, huge scores pick one key, closed queries give 0, NaN stays",
          "[kernels]") {
  for (const KernelTable* table : runnable_tables()) {
    CAPTURE(table->name);
    const Head h{18, 1, 1};
    const std::int64_t stride = 1 + kApart;
    Guarded q(17 * stride + 1, 1), k(17 * stride + 1, 0), v(17 * stride + 1, 0), dout(17 * stride + 1, 1);
    for (std::int64_t t = 0; t < 18; ++t) v[t * stride] = static_cast<real>(t + 1);
    k[3 * stride] = 1e4, q[1 * stride] = -kInf;
    k[0] = 1, k[stride] = 1;  // query 1 sees two keys, both with score -inf
    q[5 * stride] = kNan;
    const Guarded x[4] = {q, k, v, dout};
    const Run r = run(*table, h, x, true);
    CHECK(r.out[0] == 1);
    CHECK(r.out[stride] == 0);
    CHECK(r.out[4 * stride] == 4);   // exp(-1e4) = 0: only key 3 counts
    CHECK(r.out[17 * stride] == 4);  // in the next block of queries too
    CHECK(std::isnan(r.out[5 * stride]));
    CHECK(r.dv[17 * stride] == 0);
  }
}

TEST_CASE("attention under a cap bounds the scores: of two keys the better one gets at most e^(2 c) times the other",
          "[kernels]") {
  for (const KernelTable* table : runnable_tables()) {
    CAPTURE(table->name);
    const Head h{2, 1, 1, 1.5};
    const std::int64_t stride = 1 + kApart;
    Guarded q(stride + 1, 1), k(stride + 1, 0), v(stride + 1, 0), dout(stride + 1, 1);
    k[0] = 1e4, k[stride] = -1e4, v[0] = 1;
    const Guarded x[4] = {q, k, v, dout};
    const Run r = run(*table, h, x, true);
    CHECK(static_cast<double>(r.out[stride]) == Approx(1 / (1 + std::exp(-3.0))).epsilon(1e-6));
    CHECK(r.dq[stride] == 0);  // saturated
  }
}

TEST_CASE("attention does not look at later keys", "[kernels]") {
  for (const KernelTable* table : runnable_tables()) {
    const Head h{40, 8, 0.3, 2};
    const std::int64_t stride = h.width + kApart;
    Guarded x[4] = {rows_of(h, stride, 1), rows_of(h, stride, 2), rows_of(h, stride, 3), rows_of(h, stride, 4)};
    const Run before = run(*table, h, x, true);
    for (std::int64_t d = 0; d < h.width; ++d) x[1][20 * stride + d] = 7, x[2][20 * stride + d] = -9;
    const Run after = run(*table, h, x, true);
    for (std::int64_t t = 0; t < h.time; ++t) CHECK((after.out[t * stride] == before.out[t * stride]) == (t < 20));
  }
}

TEST_CASE("AVX2 and AVX-512 give the same attention, bit for bit, also in bf16", "[kernels]") {
  const auto tables = runnable_tables();
  NORMLAB_SKIP_UNLESS(tables.size() == 3, "needs a processor with AVX-512");
  for (const Head h : {Head{70, 20, 0.2}, Head{64, 16, 0.25}, Head{33, 64, 0.125}, Head{70, 20, 0.2, 1.5}}) {
    const std::int64_t stride = h.width + kApart;
    const Guarded x[4] = {rows_of(h, stride, 1), rows_of(h, stride, 2), rows_of(h, stride, 3), rows_of(h, stride, 4)};
    for (bool bf16 : {false, true}) {
      const Run one = run(*tables[0], h, x, true, bf16), two = run(*tables[1], h, x, true, bf16);
      for (auto part : {&Run::out, &Run::dq, &Run::dk, &Run::dv})
        CHECK(dense(h, one.*part, stride) == dense(h, two.*part, stride));
    }
  }
}
