#include "train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "kernels/kernels.h"

namespace normlab {

namespace {

constexpr int64_t kChunk = 16384;  // elements

AdamStep adam_step(const OptimizerConfig& c, const Update& u, double decay) {
  const auto t = static_cast<double>(u.step);
  return {.lr = u.lr,
          .beta1 = c.beta1,
          .beta2 = c.beta2,
          .eps = c.eps,
          .correction1 = 1 - std::pow(c.beta1, t),
          .correction2 = 1 - std::pow(c.beta2, t),
          .decay = decay,
          .gradient_scale = u.gradient_scale};
}

// buffer = momentum buffer + g;  p -= lr (buffer + decay p). PyTorch's SGD, decay decoupled.
void sgd(const OptimizerConfig& c, const Update& u) {
  double values = 0, changes = 0;
  for (int64_t i = 0; i < u.count; ++i) {
    const double g = u.gradient_scale * static_cast<double>(u.gradient[i]);
    const double buffer = c.momentum * static_cast<double>(u.state[0][i]) + g;
    u.state[0][i] = static_cast<real>(buffer);
    const real before = u.value[i];
    u.value[i] =
        static_cast<real>(static_cast<double>(before) - u.lr * (buffer + u.decay * static_cast<double>(before)));
    const double change = static_cast<double>(u.value[i]) - static_cast<double>(before);
    values += static_cast<double>(u.value[i]) * static_cast<double>(u.value[i]);
    changes += change * change;
  }
  u.norms[0] += values;
  u.norms[1] += changes;
}

}  // namespace

const std::vector<OptimizerDef>& all_optimizers() {
  static const std::vector<OptimizerDef> optimizers = {
      {"adam", "m, v moving averages of g, g^2; p -= lr m^ / (sqrt(v^) + eps)   (Kingma & Ba 2015)", 2, true, false,
       false,
       [](const OptimizerConfig& c, const Update& u) {
         kernels().adam(u.count, adam_step(c, u, 0), u.gradient, u.value, u.state[0], u.state[1], u.norms);
       }},
      {"adamw", "adam, and p -= lr weight_decay p on matrices   (Loshchilov & Hutter 2019)", 2, true, false, true,
       [](const OptimizerConfig& c, const Update& u) {
         kernels().adam(u.count, adam_step(c, u, u.decay), u.gradient, u.value, u.state[0], u.state[1], u.norms);
       }},
      {"sgd", "b = momentum b + g; p -= lr (b + weight_decay p)", 1, false, true, true, sgd},
  };
  return optimizers;
}

const OptimizerDef* find_optimizer(std::string_view name) {
  for (const OptimizerDef& optimizer : all_optimizers()) {
    if (optimizer.name == name) return &optimizer;
  }
  return nullptr;
}

Optimizer::Optimizer(ParamStore& store, const OptimizerDef& def, const OptimizerConfig& config)
    : store_(&store), def_(&def), config_(config) {
  for (int p = 0; p < store.count(); ++p) {
    const ParamSpec& spec = store.spec(p);
    if (!spec.trainable) continue;
    for (int64_t at = 0; at < spec.shape.count(); at += kChunk) {
      chunks_.push_back({store.offset(p) + at, std::min(kChunk, spec.shape.count() - at), spec.decays()});
    }
  }
  for (int i = 0; i < def.states; ++i) states_.emplace_back(store.total());
  partial_.resize(2 * chunks_.size());
}

double Optimizer::combine(const std::vector<real*>& slots) {
  parallel_for_elements(store_->total(), static_cast<int64_t>(chunks_.size()), [&](int64_t i) {
    const Chunk& chunk = chunks_[static_cast<std::size_t>(i)];
    real* sum = slots[0] + chunk.offset;
    for (std::size_t slot = 1; slot < slots.size(); ++slot) {
      kernels().axpby(chunk.count, real(1), sum, real(1), slots[slot] + chunk.offset, sum);
    }
    partial_[static_cast<std::size_t>(i)] = kernels().sum_squares(chunk.count, sum);
  });
  double total = 0;
  for (std::size_t i = 0; i < chunks_.size(); ++i) total += partial_[i];
  return std::sqrt(total);
}

Optimizer::Norms Optimizer::step(const real* gradient, double lr, double gradient_scale, int64_t step) {
  std::fill(partial_.begin(), partial_.end(), 0.0);
  parallel_for_elements(store_->total(), static_cast<int64_t>(chunks_.size()), [&](int64_t i) {
    const Chunk& chunk = chunks_[static_cast<std::size_t>(i)];
    Update u{chunk.count,
             lr,
             chunk.decays ? config_.weight_decay : 0.0,
             gradient_scale,
             step,
             gradient + chunk.offset,
             store_->value(0) - store_->offset(0) + chunk.offset,
             {nullptr, nullptr},
             &partial_[static_cast<std::size_t>(2 * i)]};
    for (std::size_t s = 0; s < states_.size(); ++s) u.state[s] = states_[s].data() + chunk.offset;
    def_->update(config_, u);
  });
  double parameters = 0, update = 0;
  for (std::size_t i = 0; i < chunks_.size(); ++i) parameters += partial_[2 * i], update += partial_[2 * i + 1];
  return {std::sqrt(parameters), std::sqrt(update)};
}

std::string Optimizer::first_non_finite(const real* gradient) const {
  for (int p = 0; p < store_->count(); ++p) {
    if (!store_->spec(p).trainable) continue;
    const real* g = gradient + store_->offset(p);
    if (!std::all_of(g, g + store_->spec(p).shape.count(), [](real x) { return std::isfinite(x); }))
      return store_->spec(p).name;
  }
  return "";
}

}  // namespace normlab
