// What a training step holds and asks for.
#include <atomic>
#include <cstdlib>
#include <new>

#include "core/memory.h"
#include "core/parallel.h"
#include "small_run.h"
#include "test.h"

using namespace normlab;

namespace {

std::atomic<int64_t> allocations{0};

// A trainer with all it needs; the corpus outlives it.
struct Training {
  explicit Training(const std::vector<std::string>& settings)
      : config(small_run(settings)),
        corpus(load_corpus(data_config(config), config.context)),
        batches(corpus, 1, config.context),
        trainer(model_config(config, corpus.vocabulary()), train_config(config), &batches, 1) {}
  RunConfig config;
  Corpus corpus;
  Batches batches;
  Trainer trainer;
};

struct Result {
  std::vector<double> numbers;
  std::vector<real> values;
  bool operator==(const Result&) const = default;
};

// Losses and norms of some updates and evaluations, then all parameters and states.
Result train(const std::vector<std::string>& settings) {
  Training t(settings);
  Result result;
  for (int i = 0; i < 4; ++i) {
    const StepResult step = t.trainer.step();
    result.numbers.insert(result.numbers.end(), {step.loss, step.grad_norm, step.update_norm});
    result.numbers.push_back(t.trainer.evaluate(1));
  }
  const ParamStore& store = t.trainer.params();
  for (int p = 0; p < store.count(); ++p) {
    result.values.insert(result.values.end(), store.value(p), store.value(p) + store.spec(p).shape.count());
  }
  return result;
}

}  // namespace

// Counts what the whole test program allocates with new; the sanitizers have a new of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;

void* operator new(std::size_t size) {
  ++allocations;
  if (void* data = std::malloc(size > 0 ? size : 1)) return data;
  throw std::bad_alloc();
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
#endif

TEST_CASE("a step allocates nothing after the first") {
  NORMLAB_SKIP_UNLESS(kCounts, "a sanitizer has replaced operator new");
  for (const char* norm : {"rmsnorm", "batchnorm"}) {
    for (const char* recompute : {"false", "true"}) {
      INFO(norm << ", recompute " << recompute);
      set_threads(2);
      Training t(
          {std::string("model.norm=") + norm, std::string("train.recompute=") + recompute, "train.accumulate=2"});
      t.trainer.step();
      [[maybe_unused]] const int64_t before = allocations;
      t.trainer.step();
      t.trainer.step();
#ifdef NORMLAB_STD_THREADS
      WARN("SKIPPED, not a pass: std::thread allocates for every thread it starts");
#else
      CHECK(allocations == before);
#endif
      const int64_t counted = allocations;
      std::vector<int> one(1);
      CHECK(allocations > counted);  // the counter counts
    }
  }
  set_threads(1);
}

TEST_CASE("computing a layer again for its backward changes no bit", "[threads]") {
  for (const std::vector<std::string>& settings : std::vector<std::vector<std::string>>{
           {"model.placement=pre"},
           {"model.placement=post", "model.norm=layernorm", "model.dropout=0.1"},
           {"model.placement=sandwich", "model.norm=batchnorm"},  // whose running statistics must move once
           {"model.placement=deepnorm", "model.qk_norm=rmsnorm", "model.position=rope", "model.activation=swiglu"},
           {"model.attention_cap=0.5", "model.qk_norm=l2norm", "model.attention_scale=8",
            "model.attention_scale_learned=true", "model.v_norm=rmsnorm", "model.kv_heads=1", "model.logit_cap=2",
            "train.z_loss=0.1"},
           {"run.precision=bf16", "model.attention_cap=0.5", "model.attention_scale=2", "model.logit_cap=2",
            "train.z_loss=0.1"},
           {"model.placement=residual"},                       // a second stream from layer to layer
           {"model.placement=rezero", "placement.alpha=0.5"},  // a weight that two sub-layers share
           {"run.precision=bf16", "model.norm=groupnorm", "norm.groups=2"},
           {"norm.fused=false", "train.accumulate=2", "model.tie_embeddings=true"}}) {
    INFO(settings[0]);
    std::vector<std::string> again = settings;
    again.push_back("train.recompute=true");
    const Result kept = train(settings);
    CHECK(train(again) == kept);
    set_threads(3);
    CHECK(train(again) == kept);
    set_threads(1);
  }
}

TEST_CASE("computing again keeps one stream per layer instead of all activations") {
  constexpr int64_t kWidth = 16, kTime = 32, kBatch = 2;
  const auto elements = [](int layers, Plan plan) {
    ParamStore store;
    Graph graph(store, {kBatch, kTime});
    build_decoder(graph, small_model(30, {"model.layers=" + std::to_string(layers), "model.context=32"}));
    graph.plan(plan);
    return graph.workspace_elements();
  };
  const int64_t stream = kBatch * kTime * kWidth;
  CHECK(elements(40, Plan::recompute) - elements(20, Plan::recompute) == 20 * stream);
  CHECK(elements(40, Plan::training) - elements(20, Plan::training) > 20 * 8 * stream);
}

TEST_CASE("computing again keeps no square of scores: memory grows with the context, not with its square") {
  const auto elements = [](int64_t time, Plan plan) {
    ParamStore store;
    Graph graph(store, {1, time});
    build_decoder(graph, small_model(30, {"model.context=" + std::to_string(time)}));
    graph.plan(plan);
    return static_cast<double>(graph.workspace_elements());
  };
  CHECK(elements(2048, Plan::recompute) / elements(1024, Plan::recompute) == Approx(2).epsilon(0.01));
  CHECK(elements(2048, Plan::training) - elements(1024, Plan::training) > 2 * 2 * (2048.0 * 2048 - 1024.0 * 1024) / 2);
}

TEST_CASE("large slabs are zero, on a cache line and writable to their end") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{5} << 20}) {
    auto* data = static_cast<unsigned char*>(allocate_zeros(size));
    REQUIRE(data != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(data) % 64 == 0);
    CHECK((data[0] == 0 && data[size / 2] == 0 && data[size - 1] == 0));
    data[size - 1] = 1;
    free_zeros(data, size);
  }
}
