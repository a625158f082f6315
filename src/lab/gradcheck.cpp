#include "lab/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/parallel.h"
#include "core/rng.h"
#include "core/text.h"
#include "lab/gradcheck_recording.h"

namespace normlab {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
void worsen(GradcheckRow& row, double error, std::string where) {
  if (!(error > row.error) && !std::isnan(error)) return;
  row.error = std::isnan(error) ? kInfinite : error;
  row.where = std::move(where);
}

double root_mean_square(const real* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return std::sqrt(sum / static_cast<double>(n));
}

// Backward's slope along `direction` against differences at falling steps: a kink or an eps nearby asks for small ones,
// rounding for large ones (the last serve zero rows beside an eps of 1e-8), and a wrong backward agrees with none.
// Relative to the larger of the two, or to `floor` where both are next to nothing.
void probe(GradcheckRow& row, Recording& r, int64_t first, const std::vector<double>& direction, double slope,
           double floor, const std::string& label) {
  double best = kInfinite, nearest = 0;
  for (const double h : {1e-3, 1e-2, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-11, 1e-13, 1e-15}) {
    if (best <= kGradcheckTolerance / 10) break;
    const double difference = r.difference(first, direction, h), gap = std::abs(slope - difference);
    const double error = gap == 0 ? 0 : gap / std::max({std::abs(slope), std::abs(difference), floor});
    if (error < best) best = error, nearest = difference;
  }
  worsen(row, best, str(label, ": backward ", slope, ", differences ", nearest));
}

void compare_with_differences(GradcheckRow& row, Recording& r, const GradcheckCase& c, std::string_view way) {
  const ParamStore& store = r.store();
  const std::vector<real> gradients = r.gradients(std::numeric_limits<real>::quiet_NaN(), false);
  const std::vector<real> added = r.gradients(real(1), true);
  const std::string owner = c.section == "model"  ? c.placement
                            : c.section == "norm" ? c.norm
                                                  : c.name.substr(0, c.name.find(':'));
  double largest = 0;
  for (int p = 0; p < store.count(); ++p) {
    const ParamSpec& spec = store.spec(p);
    const real *g = gradients.data() + store.offset(p), *sum = added.data() + store.offset(p);
    const int64_t n = spec.shape.count();
    for (int64_t e = 0; e < n; ++e) {
      const auto value = static_cast<double>(g[e]);
      const std::string element = str(spec.name, "[", e, "] ", way);
      if (!spec.trainable && !std::isnan(value))
        worsen(row, kInfinite, str(element, ": has no gradient, yet is written"));
      if (!spec.trainable) continue;
      if (!std::isfinite(value)) worsen(row, kInfinite, str(element, ": backward gives ", value));
      const double off = static_cast<double>(sum[e]) - 1 - value;
      if (std::abs(off) > 1e-12 * (1 + std::abs(value)))
        worsen(row, kInfinite, str(element, ": not added to an older gradient"));
    }
    if (spec.trainable) largest = std::max(largest, root_mean_square(g, n));
  }
  // Where there is no derivative, only finite numbers in the right places are asked for.
  if (!std::isfinite(row.error) || !c.rough.empty()) return;

  for (int p = 0; p < store.count(); ++p) {
    const ParamSpec& spec = store.spec(p);
    if (!spec.trainable) continue;
    const int64_t n = spec.shape.count();
    const real* g = gradients.data() + store.offset(p);
    const double size = root_mean_square(g, n), floor = std::max(1e-2 * size, 1e-5 * largest);
    std::string kind;  // the layer's number plays no part
    for (const char letter : spec.name) kind += letter >= '0' && letter <= '9' ? '*' : letter;
    if (way == "alone") {  // a second use gives any input a gradient
      bool& moves = row.gradients[str(owner, ": ", kind)];
      moves = moves || size > 1e-7 * largest;
    }
    if (c.every_element && n <= 256) {
      for (int64_t e = 0; e < n; ++e) {
        probe(row, r, store.offset(p) + e, {1.0}, static_cast<double>(g[e]), floor, str(spec.name, "[", e, "] ", way));
      }
      continue;
    }
    for (uint64_t d = 0; d < 3; ++d) {
      const Rng rng(kGradcheckSeed, stream_id(str("direction/", spec.name)), d);
      std::vector<double> direction;
      double length = 0, slope = 0;
      for (int64_t e = 0; e < n; ++e) direction.push_back(rng.normal(static_cast<uint64_t>(e)));
      for (const double v : direction) length += v * v;
      for (int64_t e = 0; e < n; ++e) {
        double& v = direction[static_cast<std::size_t>(e)];
        v /= std::sqrt(length);
        slope += v * static_cast<double>(g[e]);
      }
      probe(row, r, store.offset(p), direction, slope, floor, str(spec.name, " along direction ", d, " ", way));
    }
  }
}

// The other gradients with one input frozen are the same bits, and the frozen input's is left alone.
void compare_with_frozen(GradcheckRow& row, const GradcheckCase& c, Recording& alone) {
  const std::vector<real> wanted = alone.gradients(real(0), false);
  for (std::size_t k = 0; k < alone.inputs().asked().size(); ++k) {
    Recording r(c, false, static_cast<int>(k));
    const std::vector<real> got = r.gradients(std::numeric_limits<real>::quiet_NaN(), false);
    if (r.store().total() == 0) continue;
    std::string frozen;
    bool any_trainable = false;
    for (int p = 0; p < r.store().count(); ++p) {
      if (!r.store().spec(p).trainable && alone.store().spec(p).trainable) frozen = r.store().spec(p).name;
      any_trainable = any_trainable || r.store().spec(p).trainable;
    }
    if (!any_trainable) continue;
    for (int p = 0; p < r.store().count(); ++p) {
      const ParamSpec& spec = r.store().spec(p);
      for (int64_t e = r.store().offset(p); e < r.store().offset(p) + spec.shape.count(); ++e) {
        const auto at = static_cast<std::size_t>(e);
        const bool right = spec.trainable ? got[at] == wanted[at] : std::isnan(got[at]);
        if (!right) worsen(row, kInfinite, str(spec.name, ": wrong gradient while ", frozen, " is frozen"));
      }
    }
  }
}

}  // namespace

GradcheckRow check_gradient(const GradcheckCase& c) {
  GradcheckRow row{c.section, c.name, c.rough, 0, ""};
  Recording alone(c, false);
  for (int i = 0; i < alone.graph().ops(); ++i) row.ops.emplace(alone.graph().op(i).name());
  compare_with_differences(row, alone, c, "alone");
  if (alone.inputs().asked().empty()) return row;
  Recording shared(c, true);
  compare_with_differences(row, shared, c, "shared");
  compare_with_frozen(row, c, alone);
  return row;
}

std::vector<GradcheckRow> run_gradcheck(const std::vector<GradcheckCase>& cases, bool complete) {
  std::vector<GradcheckRow> rows(cases.size());
  parallel_for(static_cast<int64_t>(cases.size()), [&](int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      rows[at] = check_gradient(cases[at]);
    } catch (const std::exception& error) {
      rows[at] = {cases[at].section, cases[at].name, "", kInfinite, error.what()};
    }
  });
  if (!complete) return rows;
  std::set<std::string, std::less<>> used, covered = {"weighted_sum"};
  std::map<std::string, bool> moves;
  for (const GradcheckRow& row : rows) {
    for (const auto& [parameter, moved] : row.gradients) moves[parameter] = moves[parameter] || moved;
    if (row.section != "op") used.insert(row.ops.begin(), row.ops.end());
    // Its own: "OP: what is special", or for an op that a norm brings along under its own name, "NORM: ...".
    if (const std::string op = row.name.substr(0, row.name.find(':')); row.ops.count(op) > 0) covered.insert(op);
  }
  std::vector<std::string> without_case, without_gradient;
  for (const std::string& op : used) {
    if (covered.count(op) == 0) without_case.push_back(op);
  }
  for (const auto& [parameter, moved] : moves) {
    if (!moved) without_gradient.push_back(parameter);
  }
  rows.push_back(
      {"all", "every op has a case of its own", "", without_case.empty() ? 0 : kInfinite, join(without_case, ", ")});
  rows.push_back({"all", "every parameter has a gradient", "", without_gradient.empty() ? 0 : kInfinite,
                  join(without_gradient, ", ")});
  return rows;
}

}  // namespace normlab
