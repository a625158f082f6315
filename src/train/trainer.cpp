#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "core/text.h"
#include "train/initialize.h"

namespace normlab {

namespace {

constexpr int64_t kMostSlots =
    4;  // by default: more cost memory traffic for the gradients, fewer leave processors idle

// Bytes, measured: what a process of this program takes before it has a model, and the graph itself.
constexpr double kProgram = 12 << 20, kPerOp = 900;

int64_t divisor_up_to(int64_t n, int64_t most) {
  for (int64_t d = std::min(n, most); d > 1; --d) {
    if (n % d == 0) return d;
  }
  return 1;
}

}  // namespace

Trainer::Trainer(const ModelConfig& model, const TrainConfig& train, const Batches* batches, uint64_t seed,
                 bool allocate)
    : model_(model), train_(train), batches_(batches), seed_(seed), store_(std::make_unique<ParamStore>()) {
  const int64_t micro = train.batch / train.accumulate;
  slot_count_ = needs_whole_batch(model) ? 1 : train.slots > 0 ? train.slots : divisor_up_to(micro, kMostSlots);
  slot_batch_ = micro / slot_count_;
  graph_ = std::make_unique<Graph>(*store_, Graph::Sizes{slot_batch_, model.context}, model.precision);
  loss_ = build_decoder(*graph_, model).loss;
  if (graph_->whole_batch() && slot_count_ > 1) graph_->fail("a norm over the batch was declared as one over tokens");
  graph_->plan(train.recompute ? Plan::recompute : Plan::training);
  if (!allocate) return;
  store_->allocate();
  initialize(model, *store_, seed, batches, train.batch, micro);
  optimizer_ = std::make_unique<Optimizer>(*store_, *train.optimizer, train.optimizer_config);
  const auto positions = static_cast<std::size_t>(slot_batch_ * model.context);
  for (int64_t s = 0; s < slot_count_; ++s) {
    slots_.push_back(
        {std::make_unique<Workspace>(*graph_), std::vector<int32_t>(positions), std::vector<int32_t>(positions)});
    gradients_.push_back(slots_.back().work->gradients());
  }
  slot_loss_.resize(static_cast<std::size_t>(slot_count_));
  graph_->allocate_shared();
  graph_->prepare();
}

Cost Trainer::cost() const {
  Cost cost;
  cost.parameters = store_->trainable_elements();
  const auto tokens = static_cast<double>(slot_batch_ * model_.context);
  cost.flops_per_token = 3 * graph_->forward_flops() / tokens;
  const double per_slot = static_cast<double>(graph_->workspace_elements()) + static_cast<double>(store_->total());
  const double elements = static_cast<double>(store_->total()) * (1 + train_.optimizer->states) +
                          static_cast<double>(graph_->shared_elements()) + static_cast<double>(slot_count_) * per_slot;
  cost.memory = elements * sizeof(real) + kProgram + kPerOp * graph_->ops();
  return cost;
}

StepResult Trainer::step() {
  StepResult result;
  result.step = steps_done_ + 1;
  result.lr = learning_rate(*train_.schedule, train_.schedule_config, result.step);

  // The loss is a mean over the valid targets of the whole update, so their number must be known before the first
  // backward.
  const int64_t micro = train_.batch / train_.accumulate;
  const auto load = [&](int64_t slot, int64_t m) {
    Slot& s = slots_[static_cast<std::size_t>(slot)];
    int64_t valid = 0;
    for (int64_t i = 0; i < slot_batch_; ++i) {
      int32_t* targets = s.targets.data() + i * model_.context;
      batches_->train(result.step, m * micro + slot * slot_batch_ + i, s.tokens.data() + i * model_.context, targets);
      for (int64_t t = 0; t < model_.context; ++t) valid += targets[t] >= 0 ? 1 : 0;
    }
    return valid;
  };
  int64_t valid = 0;
  for (int64_t m = 0; m < train_.accumulate; ++m) {
    for (int64_t slot = 0; slot < slot_count_; ++slot) valid += load(slot, m);
  }

  keep_states();
  double loss = 0;
  for (int64_t m = 0; m < train_.accumulate; ++m) {
    parallel_for(slot_count_, [&](int64_t slot) {
      if (train_.accumulate > 1) load(slot, m);
      Slot& s = slots_[static_cast<std::size_t>(slot)];
      Pass pass;
      pass.tokens = s.tokens.data();
      pass.targets = s.targets.data();
      pass.loss_scale = 1 / static_cast<double>(valid);
      pass.add_to_gradients = m > 0;
      pass.seed = seed_;
      pass.update = static_cast<uint64_t>(result.step);
      pass.first_sequence = m * micro + slot * slot_batch_;
      graph_->forward(*s.work, pass);
      slot_loss_[static_cast<std::size_t>(slot)] = *graph_->value(*s.work, loss_).data;
      graph_->backward(*s.work, pass);
    });
    for (const real slot_loss : slot_loss_) loss += static_cast<double>(slot_loss);
  }
  result.loss = loss / static_cast<double>(valid);

  result.grad_norm = optimizer_->combine(gradients_);
  result.tokens = tokens_seen_ + valid;
  if (!std::isfinite(result.loss)) {
    result.trouble = str("the loss is ", result.loss);
  } else if (!std::isfinite(result.grad_norm)) {
    result.trouble = str("the gradient of ", optimizer_->first_non_finite(gradients_[0]), " is not finite");
  }
  if (!result.trouble.empty()) {
    put_states_back();
    result.param_norm = result.update_norm = std::numeric_limits<double>::quiet_NaN();
    return result;
  }

  const double scale = train_.clip > 0 && result.grad_norm > train_.clip ? train_.clip / result.grad_norm : 1.0;
  const Optimizer::Norms norms = optimizer_->step(gradients_[0], result.lr, scale, result.step);
  result.param_norm = norms.parameters;
  result.update_norm = norms.update;
  graph_->prepare();
  steps_done_ = result.step;
  tokens_seen_ = result.tokens;
  return result;
}

void Trainer::keep_states() {
  states_before_.clear();
  for (int p = 0; p < store_->count(); ++p) {
    if (!store_->spec(p).trainable)
      states_before_.insert(states_before_.end(), store_->value(p), store_->value(p) + store_->spec(p).shape.count());
  }
}

void Trainer::put_states_back() {
  const real* from = states_before_.data();
  for (int p = 0; p < store_->count(); ++p) {
    if (store_->spec(p).trainable) continue;
    std::copy_n(from, store_->spec(p).shape.count(), store_->value(p));
    from += store_->spec(p).shape.count();
  }
}

double Trainer::evaluate(int64_t count) {
  const int64_t windows = count * train_.batch, per_round = slot_count_ * slot_batch_;
  std::vector<int64_t> valid(static_cast<std::size_t>(slot_count_));
  double loss = 0;
  int64_t targets_seen = 0;
  for (int64_t first = 0; first < windows; first += per_round) {
    parallel_for(slot_count_, [&](int64_t slot) {
      Slot& s = slots_[static_cast<std::size_t>(slot)];
      int64_t n = 0;
      for (int64_t i = 0; i < slot_batch_; ++i) {
        int32_t* targets = s.targets.data() + i * model_.context;
        batches_->validation(first + slot * slot_batch_ + i, windows, s.tokens.data() + i * model_.context, targets);
        for (int64_t t = 0; t < model_.context; ++t) n += targets[t] >= 0 ? 1 : 0;
      }
      Pass pass;
      pass.training = false;
      pass.tokens = s.tokens.data();
      pass.targets = s.targets.data();
      graph_->forward(*s.work, pass);
      slot_loss_[static_cast<std::size_t>(slot)] = *graph_->value(*s.work, loss_).data;
      valid[static_cast<std::size_t>(slot)] = n;
    });
    for (std::size_t slot = 0; slot < valid.size(); ++slot) {
      loss += static_cast<double>(slot_loss_[slot]);
      targets_seen += valid[slot];
    }
  }
  return loss / static_cast<double>(targets_seen);
}

void Trainer::restore(int64_t steps_done, int64_t tokens_seen) {
  steps_done_ = steps_done;
  tokens_seen_ = tokens_seen;
  graph_->prepare();
}

}  // namespace normlab
