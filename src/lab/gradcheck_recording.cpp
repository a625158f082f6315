#include "lab/gradcheck_recording.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/rng.h"
#include "core/text.h"
#include "normlab/ops.h"

namespace normlab {

namespace {

// s = sum of w x, w fixed: random cotangents.  dx = w ds.
class WeightedSum final : public Op {
 public:
  WeightedSum(const Shape& shape, std::string_view label) {
    // Away from 0, so that no element is left out.
    const Rng rng(kGradcheckSeed, stream_id(str("cotangent/", label)));
    for (int64_t i = 0; i < shape.count(); ++i) {
      const double u = 2 * rng.uniform(static_cast<uint64_t>(i)) - 1;
      weights_.push_back(u + std::copysign(0.5, u));
    }
  }
  std::string_view name() const override { return "weighted_sum"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    double sum = 0;
    for (int64_t r = 0; r < x.rows; ++r) {
      for (int64_t j = 0; j < x.cols; ++j) sum += weight(r * x.cols + j) * static_cast<double>(x.row(r)[j]);
    }
    *c.out().data = static_cast<real>(sum);
  }
  void backward(const OpContext& c) const override {
    const Gradient dx = c.grad(0);
    const auto ds = static_cast<double>(*c.grad_out().data);
    for (int64_t r = 0; r < dx.view.rows; ++r) {
      for (int64_t j = 0; j < dx.view.cols; ++j) {
        real& to = dx.view.row(r)[j];
        to = (dx.accumulate ? to : real(0)) + static_cast<real>(weight(r * dx.view.cols + j) * ds);
      }
    }
  }

 private:
  double weight(int64_t i) const { return weights_[static_cast<std::size_t>(i)]; }
  std::vector<double> weights_;
};

Var weighted_sum(Var x, std::string_view label) {
  return x.graph->append(std::make_unique<WeightedSum>(x.shape(), label), {x}, {1});
}

}  // namespace

Var CaseInputs::weight(const std::string& name, const Shape& shape, Fill fill) {
  ParamSpec spec;
  spec.name = name;
  spec.shape = shape;
  spec.trainable = static_cast<int>(asked_.size()) != frozen_;
  fills_[name] = std::move(fill);
  asked_.push_back(graph.param(spec));
  return asked_.back();
}

Var CaseInputs::tensor(const std::string& name, const Shape& shape, Fill fill) {
  const Var x = weight(name, shape, std::move(fill));
  if (!shared_) return x;
  asked_.back() = affine(x, 1, 0);
  return asked_.back();
}

Var CaseInputs::state(const std::string& name, const Shape& shape, double initial) {
  ParamSpec spec;
  spec.name = name;
  spec.shape = shape;
  spec.mean = initial;
  spec.trainable = false;
  return graph.param(spec);
}

double CaseInputs::value(const std::string& name, double normal) const {
  const Fill& fill = fills_.at(name);
  return fill ? fill(normal) : normal;
}

Recording::Recording(const GradcheckCase& c, bool shared, int frozen)
    : graph_(store_, c.sizes), inputs_(graph_, shared, frozen) {
  result_ = c.record(inputs_);
  graph_.keep(result_);
  Var loss = weighted_sum(result_, "result");
  if (shared) {
    for (const Var x : inputs_.asked()) loss = add(loss, weighted_sum(x, str("second use of ", x.id)));
  }
  graph_.set_loss(loss);
  graph_.plan(Plan::training);
  store_.allocate();
  store_.initialize(kGradcheckSeed);
  set_values();
  start_.assign(store_.value(0), store_.value(0) + store_.total());
  work_ = std::make_unique<Workspace>(graph_);
  graph_.allocate_shared();
  const int64_t positions = c.sizes.batch * c.sizes.time;
  const Rng rng(kGradcheckSeed, stream_id("tokens"));
  const auto bound = static_cast<uint64_t>(c.vocabulary);
  for (int64_t i = 0; i < positions; ++i) {
    const auto draw = 2 * static_cast<uint64_t>(i);
    tokens_.push_back(static_cast<int32_t>(rng.below(draw, bound)));
    targets_.push_back(static_cast<int32_t>(rng.below(draw + 1, bound)));
    if (c.ignored != GradcheckCase::Ignored::none && i % 3 == 1) targets_.back() = -1;
    if (c.ignored == GradcheckCase::Ignored::sequence && i < c.sizes.time) targets_.back() = -1;
  }
  pass_.training = c.training;
  pass_.tokens = tokens_.data();
  pass_.targets = targets_.data();
  pass_.seed = kGradcheckSeed;
  pass_.update = 3;
  pass_.first_sequence = 1;
}

// Gains off 1, biases and branch scales off 0: what stands at its initial value hides mistakes.
void Recording::set_values() {
  for (int p = 0; p < store_.count(); ++p) {
    const ParamSpec& spec = store_.spec(p);
    const Rng rng(kGradcheckSeed, stream_id("value/" + spec.name));
    for (int64_t e = 0; e < spec.shape.count(); ++e) {
      const double z = rng.normal(static_cast<uint64_t>(e));
      real& value = store_.value(p)[e];
      if (inputs_.owns(spec.name)) {
        value = static_cast<real>(inputs_.value(spec.name, z));
      } else if (spec.role == Role::vector) {
        value = static_cast<real>(spec.mean != 0 ? spec.mean * std::exp(0.3 * z) : 0.3 * z);
      }
    }
  }
}

void Recording::restore_states() {
  for (int p = 0; p < store_.count(); ++p) {
    if (store_.spec(p).trainable) continue;
    std::copy_n(start_.begin() + store_.offset(p), store_.spec(p).shape.count(), store_.value(p));
  }
}

std::vector<real> Recording::result() {
  loss();
  std::vector<real> out;
  const ConstView y = graph_.value(*work_, result_);
  for (int64_t r = 0; r < y.rows; ++r) out.insert(out.end(), y.row(r), y.row(r) + y.cols);
  return out;
}

std::vector<real> Recording::gradients(real before, bool add) {
  restore_states();
  graph_.prepare();
  work_->poison();
  std::fill(work_->gradients(), work_->gradients() + store_.total(), before);
  pass_.add_to_gradients = add;
  graph_.forward(*work_, pass_);
  graph_.backward(*work_, pass_);
  return {work_->gradients(), work_->gradients() + store_.total()};
}

double Recording::loss() {
  restore_states();
  graph_.prepare();
  graph_.forward(*work_, pass_);
  return static_cast<double>(graph_.loss(*work_));
}

// Two central differences, so that the error falls with the fourth power of h.
double Recording::difference(int64_t first, const std::vector<double>& direction, double h) {
  real* values = store_.value(0) + first;
  const auto start = start_.begin() + first;
  const auto at = [&](double steps) {
    for (std::size_t e = 0; e < direction.size(); ++e) {
      values[e] =
          static_cast<real>(static_cast<double>(start[static_cast<std::ptrdiff_t>(e)]) + steps * h * direction[e]);
    }
    return loss();
  };
  const double near = at(1) - at(-1), far = at(2) - at(-2);
  std::copy_n(start, direction.size(), values);
  return (8 * near - far) / (12 * h);
}

}  // namespace normlab
