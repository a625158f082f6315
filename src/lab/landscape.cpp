#include "lab/landscape.h"

#include <algorithm>
#include <cmath>

#include "report/csv.h"

namespace normlab {

namespace {

constexpr double kMultiples[] = {0.5, 1, 2, 4};

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return std::sqrt(sum);
}

}  // namespace

const char kLandscapeHeader[] = "step,loss,loss_low,loss_high,gradient_norm,change_low,change_high,smoothness\n";

std::string landscape_row(const LandscapeRow& r) {
  return csv_row(r.step, r.loss, r.loss_low, r.loss_high, r.gradient_norm, r.change_low, r.change_high, r.smoothness);
}

LandscapeRow landscape(Probe& probe, ParamStore& store, double length) {
  LandscapeRow row;
  row.loss = probe.loss_and_gradient();
  const std::vector<double> gradient = probe.gradient();
  row.gradient_norm = norm(gradient);
  if (!std::isfinite(row.gradient_norm) || row.gradient_norm == 0) {  // no direction to go
    row.loss_low = row.loss_high = row.change_low = row.change_high = row.smoothness = std::nan("");
    return row;
  }
  row.loss_low = row.change_low = INFINITY;
  row.loss_high = row.change_high = -INFINITY;
  std::vector<real> before;
  for (int p = 0; p < store.count(); ++p)
    before.insert(before.end(), store.value(p), store.value(p) + store.spec(p).shape.count());
  for (const double multiple : kMultiples) {
    const double t = multiple * length / row.gradient_norm;
    std::size_t at = 0, of_gradient = 0;
    for (int p = 0; p < store.count(); ++p) {
      for (int64_t i = 0; i < store.spec(p).shape.count(); ++i, ++at) {
        if (!store.spec(p).trainable) continue;
        store.value(p)[i] = static_cast<real>(static_cast<double>(before[at]) - t * gradient[of_gradient++]);
      }
    }
    const double loss = probe.loss_and_gradient(), change = distance(probe.gradient(), gradient);
    if (!std::isfinite(loss))
      row.loss_low = row.loss_high = row.change_low = row.change_high = row.smoothness = loss - loss;
    // What is nan stays so: min and max keep their first argument then.
    row.loss_low = std::min(row.loss_low, loss), row.loss_high = std::max(row.loss_high, loss);
    row.change_low = std::min(row.change_low, change), row.change_high = std::max(row.change_high, change);
    row.smoothness = std::max(row.smoothness, change / (t * row.gradient_norm));
  }
  const real* from = before.data();
  for (int p = 0; p < store.count(); ++p) {
    std::copy_n(from, store.spec(p).shape.count(), store.value(p));
    from += store.spec(p).shape.count();
  }
  return row;
}

}  // namespace normlab
