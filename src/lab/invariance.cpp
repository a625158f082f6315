#include "lab/invariance.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "report/csv.h"

namespace normlab {

namespace {

constexpr int64_t kRows = kInvarianceBatch * kInvarianceTime, kCount = kRows * kInvarianceWidth;
constexpr int64_t kChanged = (kInvarianceTime / 2) * kInvarianceWidth;  // first sequence, middle position
constexpr double kShift = 3, kScale = 2.5;

using Numbers = std::vector<double>;

// One norm with its parameters as they start, on one batch.
class Bench {
 public:
  explicit Bench(const NormDef& norm) : graph_(store_, {kInvarianceBatch, kInvarianceTime}) {
    NormChoice choice;
    choice.def = &norm;
    choice.eps = norm.default_eps;
    ParamSpec x;
    x.name = "x";
    x.shape = {kInvarianceBatch, kInvarianceTime, kInvarianceWidth};
    y_ = apply_norm(graph_, choice, "norm", affine(graph_.param(x), 1, 0));
    graph_.keep(y_);
    graph_.plan(Plan::inference);
    store_.allocate();
    store_.initialize(1);
    graph_.allocate_shared();
    graph_.prepare();
  }
  Numbers operator()(const Numbers& x, bool training = true, bool moves = false) {
    std::transform(x.begin(), x.end(), store_.value(store_.find("x")), [](double v) { return static_cast<real>(v); });
    const std::vector<int32_t> targets(kRows, 0);
    Pass pass;
    pass.training = training, pass.again = !moves;
    pass.targets = targets.data();
    Workspace work(graph_, false);
    graph_.forward(work, pass);
    Numbers out;
    for (int64_t r = 0; r < kRows; ++r) {
      const real* row = graph_.value(work, y_).row(r);
      for (int64_t j = 0; j < kInvarianceWidth; ++j) out.push_back(static_cast<double>(row[j]));
    }
    return out;
  }

 private:
  ParamStore store_;
  Graph graph_;
  Var y_;
};

Numbers map(Numbers x, double factor, double offset) {
  for (double& value : x) value = factor * value + offset;
  return x;
}

// The channels of every row in another order, in which neighbours are parted: c -> 7 c + 3, as 7 and the width have no
// common factor.
Numbers reordered(const Numbers& x) {
  Numbers out = x;
  for (int64_t i = 0; i < kCount; ++i) {
    const int64_t c = i % kInvarianceWidth;
    out[static_cast<std::size_t>(i - c + (7 * c + 3) % kInvarianceWidth)] = x[static_cast<std::size_t>(i)];
  }
  return out;
}

double root_mean_square(const Numbers& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

double change(const Numbers& y, const Numbers& from) {
  double most = 0;
  for (std::size_t i = 0; i < y.size(); ++i) most = std::max(most, std::abs(y[i] - from[i]));
  return most / root_mean_square(from);
}

// Least squares of x on y per channel: root mean square of what is left of x, over that of x around its mean.
double not_given_back(const Numbers& x, const Numbers& y) {
  double left = 0, total = 0;
  for (std::size_t j = 0; j < static_cast<std::size_t>(kInvarianceWidth); ++j) {
    double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
    for (std::size_t i = j; i < x.size(); i += kInvarianceWidth) mx += x[i] / kRows, my += y[i] / kRows;
    for (std::size_t i = j; i < x.size(); i += kInvarianceWidth) {
      xx += (x[i] - mx) * (x[i] - mx), xy += (x[i] - mx) * (y[i] - my), yy += (y[i] - my) * (y[i] - my);
    }
    left += yy > 0 ? xx - xy * xy / yy : xx, total += xx;
  }
  return std::sqrt(std::max(0.0, left) / total);
}

}  // namespace

const char kInvarianceHeader[] = "norm,shift,scale,order,evaluation,unrestored,batch,future\n";

std::string invariance_row(const InvarianceRow& r) {
  return csv_row(r.norm, r.shift, r.scale, r.order, r.evaluation, r.unrestored, std::string(r.batch ? "yes" : "no"),
                 std::string(r.future ? "yes" : "no"));
}

InvarianceRow measure_invariance(const NormDef& norm) {
  InvarianceRow row;
  row.norm = std::string(norm.name);
  // Channels and positions differ in mean and spread, so that no statistic is like another.
  Numbers x;
  const Rng rng(1, stream_id("invariance"));
  for (int64_t i = 0; i < kCount; ++i) {
    const double channel = static_cast<double>(i % kInvarianceWidth),
                 position = static_cast<double>(i / kInvarianceWidth);
    x.push_back((1 + 0.1 * channel + 0.05 * position) * rng.normal(static_cast<uint64_t>(i)) + 0.3 * channel);
  }
  Bench bench(norm);
  const Numbers y = bench(x);
  row.shift = change(bench(map(x, 1, kShift)), y);
  row.scale = change(bench(map(x, kScale, 0)), y);
  row.order = change(bench(reordered(x)), reordered(y));
  row.unrestored = not_given_back(x, y);
  Numbers other = x;
  other[static_cast<std::size_t>(kChanged)] += 1;
  const Numbers moved = bench(other);
  for (int64_t i = 0; i < kCount; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const bool hears = moved[at] != y[at];  // what does not listen gives the same bits
    row.reach.push_back(i == kChanged ? 2 : hears ? 1 : 0);
    const int64_t position = i / kInvarianceWidth, changed = kChanged / kInvarianceWidth;
    row.batch = row.batch || (hears && position >= kInvarianceTime);
    row.future = row.future || (hears && position < changed);
  }
  bench(x, true, true);
  row.evaluation = change(bench(x, false), y);
  return row;
}

}  // namespace normlab
