// Whole training steps: the reference sizes against the peak, every placement and norm against pre-RMSNorm, depth.
#include "core/parallel.h"
#include "core/text.h"
#include "kernels/kernels.h"
#include "lab/bench.h"
#include "lab/run.h"

namespace normlab {

namespace {

using Threads = Measurement::Threads;

std::vector<Setting> settings_of(const StepSize& size, const std::vector<std::string>& more) {
  std::vector<std::string> sets = {str("model.layers=", size.layers),
                                   str("model.width=", size.width),
                                   str("model.heads=", size.heads),
                                   str("model.context=", size.context),
                                   str("train.batch=", size.batch),
                                   "model.placement=pre",
                                   "model.norm=rmsnorm",
                                   "train.optimizer=adamw",
                                   "train.lr=0",
                                   "data.tokens=100000"};
  for (const std::string& set : more) {  // later words win
    std::erase_if(sets, [&](const std::string& s) { return split(s, '=')[0] == split(set, '=')[0]; });
    sets.push_back(set);
  }
  return parse_config("", "bench", sets).settings;
}

}  // namespace

struct BenchStep::Parts {
  Parts(const RunConfig& config)
      : corpus(load_corpus(data_config(config), config.context)),
        batches(corpus, 1, config.context),
        model(model_config(config, corpus.vocabulary())) {
    const TrainConfig train = train_config(config);
    check_memory(Trainer(model, train, &batches, 1, false).cost());
    trainer = std::make_unique<Trainer>(model, train, &batches, 1);
    tokens = static_cast<double>(config.batch * config.context);
  }
  Corpus corpus;
  Batches batches;
  ModelConfig model;
  std::unique_ptr<Trainer> trainer;
  double tokens = 0;
};

BenchStep::BenchStep(const StepSize& size, const std::vector<std::string>& settings)
    : parts_(std::make_unique<Parts>(resolve(settings_of(size, settings)))) {}
BenchStep::~BenchStep() = default;
void BenchStep::run() { parts_->trainer->step(); }
double BenchStep::tokens() const { return parts_->tokens; }
double BenchStep::flops() const { return parts_->trainer->cost().flops_per_token * tokens(); }

namespace {

// ---- step ----

std::shared_ptr<BenchStep> make_step(const StepSize& size, const std::vector<std::string>& settings = {}) {
  return std::make_shared<BenchStep>(size, settings);
}

// One step; shown as tokens per second, counted in FLOPs.
Work step_rate(const std::shared_ptr<BenchStep>& step, int threads) {
  return {one_by_one([=] {
            set_threads(threads);
            step->run();
          }),
          step->flops(), "tokens/s", step->flops() / step->tokens()};
}

Work step_time(const std::shared_ptr<BenchStep>& step) {
  return {one_by_one([=] { step->run(); }), 1, "ms", 1e-3};
}

// ---- zoo: everything registered, at 24 x 64 ----

struct Contender {
  std::string name;
  std::vector<std::string> settings;
  std::string against_name;
  std::vector<std::string> against;
};

std::vector<Contender> contenders() {
  std::vector<Contender> list;
  for (const Placement* p : all_placements()) {
    if (p->name != "pre") list.push_back({str("placement ", p->name), {str("model.placement=", p->name)}, "pre", {}});
  }
  for (const NormDef* n : all_norms()) {
    const std::string setting = str("model.norm=", n->name);
    if (n->name != "rmsnorm") list.push_back({str("norm ", n->name), {setting}, "rmsnorm", {}});
    if (n->fused != nullptr)
      list.push_back({str(n->name, " composed"), {setting, "norm.fused=false"}, "fused", {setting}});
  }
  return list;
}

// ---- depth: the reference batch, where 12 layers do not fit into a cache either; 1000 layers take some 8 GiB ----

constexpr int64_t kDepths[] = {12, 100, 1000};

StepSize deep(int64_t layers) { return {"", layers, 64, 4, 64, 16}; }

Work per_layer(std::function<void()> call, int64_t layers) {
  return {one_by_one(std::move(call)), static_cast<double>(layers), "us/layer", 1e-6};
}

Work deep_step(int64_t layers) {
  const auto step = make_step(deep(layers));
  return per_layer([=] { step->run(); }, layers);
}

// Recording the graph and planning its memory, without taking any.
Work graph_building(int64_t layers) {
  const RunConfig config = resolve(settings_of(deep(layers), {}));
  const ModelConfig model = model_config(config, 64);
  const TrainConfig train = train_config(config);
  return per_layer([=] { Trainer(model, train, nullptr, 1, false); }, layers);
}

Pair deep_pair(Work (*work)(int64_t), int64_t layers) {
  if (layers == kDepths[0]) return {work(layers), "", {}};
  return {work(layers), str(kDepths[0], " layers"), work(kDepths[0])};
}

}  // namespace

std::vector<Measurement> step_measurements() {
  std::vector<Measurement> list;
  for (const StepSize& size : kStepSizes) {
    list.push_back({str("step ", size.name), Threads::each, [&size](int threads) {
                      return Pair{step_rate(make_step(size), threads), "FMA peak", fma_peak(threads)};
                    }});
  }
  list.push_back({str("step ", kStepSizes[0].name), Threads::all, [](int threads) {
                    const auto step = make_step(kStepSizes[0]);
                    return Pair{step_rate(step, threads), "1 thread", step_rate(step, 1)};
                  }});
  list.push_back({str("step ", kStepSizes[1].name, " bf16"), Threads::all, [](int threads) {
                    return Pair{step_rate(make_step(kStepSizes[1], {"run.precision=bf16"}), threads), "fp32",
                                step_rate(make_step(kStepSizes[1]), threads)};
                  }});
  return list;
}

std::vector<Measurement> zoo_measurements() {
  std::vector<Measurement> list;
  for (const Contender& c : contenders()) {
    list.push_back({c.name, Threads::all,
                    [c](int) {
                      return Pair{step_time(make_step(kStepSizes[0], c.settings)), c.against_name,
                                  step_time(make_step(kStepSizes[0], c.against))};
                    },
                    true});
  }
  return list;
}

std::vector<Measurement> depth_measurements() {
  std::vector<Measurement> list;
  for (const int64_t layers : kDepths) {
    list.push_back(
        {str("step, ", layers, " layers"), Threads::one, [=](int) { return deep_pair(deep_step, layers); }, true});
  }
  for (const int64_t layers : kDepths) {
    list.push_back({str("graph building, ", layers, " layers"), Threads::one,
                    [=](int) { return deep_pair(graph_building, layers); }, true});
  }
  list.push_back({str("data to first step, ", kStepSizes[0].name), Threads::all,
                  [](int) {
                    const auto start = [] { BenchStep(kStepSizes[0], {"data.tokens=1000000"}).run(); };
                    return Pair{{one_by_one(start), 1, "ms", 1e-3}, "", {}};
                  },
                  true});
  return list;
}

}  // namespace normlab
