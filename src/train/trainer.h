// Trains one decoder: slots, gradient accumulation, clipping, update, evaluation. Knows no files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/batches.h"
#include "normlab/model.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace normlab {

struct TrainConfig {
  int64_t batch = 16;      // sequences per update
  int64_t accumulate = 1;  // micro-batches per update; divides batch
  int64_t slots = 0;  // pieces a micro-batch is cut into; 0 = the largest divisor up to 4. Never the number of threads
  bool recompute = false;  // activations inside a layer are computed again for its backward instead of kept: same bits
  double clip = 0;         // largest gradient norm; 0 = off
  const OptimizerDef* optimizer = nullptr;
  OptimizerConfig optimizer_config;
  const ScheduleDef* schedule = nullptr;
  ScheduleConfig schedule_config;
};

// One update. Not finite where the run diverged: then parameters, states and the optimizer's state are as before.
struct StepResult {
  int64_t step = 0;                        // from 1
  int64_t tokens = 0;                      // valid targets seen so far
  double lr = 0, loss = 0;                 // the loss without any z loss
  double grad_norm = 0;                    // of the objective, before clipping
  double param_norm = 0, update_norm = 0;  // of the parameters after the update, of the change
  std::string trouble;                     // why it is not finite, with the parameter's name; "" while all is well
};

// What a training step costs, without running one.
struct Cost {
  int64_t parameters = 0;      // trainable
  double flops_per_token = 0;  // forward and backward, attention counted on its causal half
  double memory = 0;           // bytes: parameters, optimizer, gradients, workspaces, and the program itself
};

class Trainer {
 public:
  // `batches` must outlive the trainer; nullptr where it will not step (see also initialize()). `allocate` = false
  // builds and plans everything, but holds no memory (cost() only).
  Trainer(const ModelConfig& model, const TrainConfig& train, const Batches* batches, uint64_t seed,
          bool allocate = true);

  StepResult step();
  // Mean loss per valid target over `count` x batch fixed validation windows. Changes nothing a later step can see.
  double evaluate(int64_t count);

  Cost cost() const;
  int64_t slots() const { return static_cast<int64_t>(slot_count_); }
  ParamStore& params() { return *store_; }
  const ParamStore& params() const { return *store_; }
  Optimizer& optimizer() { return *optimizer_; }
  int64_t steps_done() const { return steps_done_; }
  int64_t tokens_seen() const { return tokens_seen_; }
  // After params() and optimizer() were filled from a checkpoint.
  void restore(int64_t steps_done, int64_t tokens_seen);

 private:
  struct Slot {
    std::unique_ptr<Workspace> work;
    std::vector<int32_t> tokens, targets;
  };
  void keep_states();
  void put_states_back();

  ModelConfig model_;
  TrainConfig train_;
  const Batches* batches_;
  uint64_t seed_;
  Var loss_;  // the cross entropy
  int64_t slot_count_ = 1, slot_batch_ = 1;
  std::unique_ptr<ParamStore> store_;
  std::unique_ptr<Graph> graph_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<Slot> slots_;
  std::vector<real*> gradients_;  // of each slot
  std::vector<real> slot_loss_;
  std::vector<real> states_before_;  // running statistics move in the forward pass; a step that diverges puts them back
  int64_t steps_done_ = 0, tokens_seen_ = 0;
};

}  // namespace normlab
