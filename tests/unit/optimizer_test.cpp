// Updates worked by hand from the formulas in train/optimizer.cpp.
#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../small_run.h"
#include "../test.h"
#include "core/parallel.h"

using namespace normlab;

namespace {

// One matrix "m" and one vector "v" of the same size, both at `value`, and a gradient for each.
class TwoParameters {
 public:
  TwoParameters(std::string_view optimizer, const OptimizerConfig& config, int64_t size = 1, real value = 0)
      : optimizer_(declare(store_, size, value), *find_optimizer(optimizer), config), gradient_(store_.total()) {}

  real& m(int64_t i = 0) { return store_.value(0)[i]; }
  real& v(int64_t i = 0) { return store_.value(1)[i]; }
  real* gradient(int which) { return gradient_.data() + store_.offset(which); }
  Optimizer& optimizer() { return optimizer_; }
  ParamStore& store() { return store_; }

  // The same gradient for every element of both.
  Optimizer::Norms step(double g, double lr, double scale = 1) {
    gradient_.fill(static_cast<real>(g));
    return optimizer_.step(gradient_.data(), lr, scale, ++steps_);
  }

 private:
  static ParamStore& declare(ParamStore& store, int64_t size, real value) {
    for (const auto& [name, role] : {std::pair{"m", Role::head}, std::pair{"v", Role::vector}}) {
      ParamSpec spec;
      spec.name = name;
      spec.shape = {size};
      spec.role = role;
      spec.mean = static_cast<double>(value);
      store.declare(spec);
    }
    store.allocate();
    store.initialize(1);
    return store;
  }

  ParamStore store_;
  Optimizer optimizer_;
  Slab gradient_;
  int64_t steps_ = 0;
};

// The norm and the sum that combine() gives for slots of one number each.
std::pair<double, double> combined(const std::vector<real>& slots) {
  TwoParameters p("sgd", {});
  std::vector<Slab> slabs;
  std::vector<real*> pointers;
  for (const real value : slots) {
    slabs.emplace_back(p.store().total());
    slabs.back().data()[0] = value;
  }
  for (Slab& slab : slabs) pointers.push_back(slab.data());
  const double norm = p.optimizer().combine(pointers);
  return {norm, static_cast<double>(pointers[0][0])};
}

}  // namespace

TEST_CASE("Adam adds eps after correcting the second moment, so a gradient of eps moves half a rate") {
  TwoParameters p("adam", {.beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8});
  p.step(1e-8, 1e-3);
  CHECK(p.m() == Approx(-5.0e-4).epsilon(1e-4));  // folded into the correction it would be 3.065e-5
}

TEST_CASE("two Adam updates give the values worked by hand") {
  TwoParameters p("adam", {.beta1 = 0.9, .beta2 = 0.999, .eps = 0});
  p.step(1, 0.1);
  CHECK(p.m() == Approx(-0.1));
  // m = 0.09 - 0.05 = 0.04, v = 0.000999 + 0.00025; m / 0.19 = 0.2105263, sqrt(v / 0.001999) = 0.7904508.
  const Optimizer::Norms norms = p.step(-0.5, 0.1);
  CHECK(p.m() == Approx(-0.1266337).epsilon(1e-5));
  CHECK(p.v() == p.m());
  CHECK(norms.parameters == Approx(std::sqrt(2.0) * 0.1266337).epsilon(1e-5));
  CHECK(norms.update == Approx(std::sqrt(2.0) * 0.0266337).epsilon(1e-4));
}

TEST_CASE("a gain of 1 under a constant gradient falls by the rate in each Adam update") {
  TwoParameters p("adam", {}, 1, 1);
  for (int i = 0; i < 100; ++i) p.step(0.3, 1e-3);
  CHECK(p.v() == Approx(0.9).epsilon(1e-5));
}

TEST_CASE("SGD accumulates momentum as PyTorch does") {
  TwoParameters p("sgd", {.momentum = 0.9});
  p.step(1, 0.1);
  CHECK(p.m() == Approx(-0.1));
  p.step(1, 0.1);
  CHECK(p.m() == Approx(-0.29));  // buffer 1.9
  p.step(1, 0.1);
  CHECK(p.m() == Approx(-0.561));  // buffer 2.71
}

TEST_CASE("weight decay is decoupled, follows the scheduled rate and leaves vectors alone") {
  for (const char* name : {"adamw", "sgd"}) {
    INFO(name);
    TwoParameters p(name, {.weight_decay = 0.1}, 1, 1);
    p.step(0, 0.1);
    CHECK(p.m() == Approx(0.99));  // L2 inside Adam would give 0.90
    p.step(0, 0.2);
    CHECK(p.m() == Approx(0.99 * 0.98));
    CHECK(p.v() == 1);
  }
  TwoParameters plain("adam", {.weight_decay = 0.1}, 1, 1);
  plain.step(0, 0.1);
  CHECK(plain.m() == 1);
}

TEST_CASE("weight decay shrinks every matrix and no gain, bias or running statistic, for every norm and for QK norms") {
  for (const NormDef* norm : all_norms()) {
    INFO(norm->name);
    ParamStore store;
    Graph graph(store, {2, 8});
    build_decoder(graph, small_model(11, {"model.norm=" + std::string(norm->name), "model.qk_norm=layernorm",
                                          "model.activation=swiglu", "model.placement=sandwich"}));
    store.allocate();
    store.initialize(1);
    for (int p = 0; p < store.count(); ++p) {
      if (!store.spec(p).decays()) std::fill_n(store.value(p), store.spec(p).shape.count(), real(0.75));
    }
    ParamStore before;
    for (int p = 0; p < store.count(); ++p) before.declare(store.spec(p));
    before.allocate();
    for (int p = 0; p < store.count(); ++p) std::copy_n(store.value(p), store.spec(p).shape.count(), before.value(p));

    Optimizer optimizer(store, *find_optimizer("adamw"), {.weight_decay = 0.1});
    const Slab zero(store.total());
    for (int64_t step = 1; step <= 10; ++step) optimizer.step(zero.data(), 0.1, 1, step);
    int matrices = 0;
    for (int p = 0; p < store.count(); ++p) {
      const ParamSpec& spec = store.spec(p);
      INFO(spec.name);
      const bool matrix = spec.shape.rank() == 2;
      matrices += matrix ? 1 : 0;
      CHECK(spec.decays() == matrix);
      for (int64_t i = 0; i < spec.shape.count(); ++i) {
        const double was = static_cast<double>(before.value(p)[i]), is = static_cast<double>(store.value(p)[i]);
        if (std::abs(is - (matrix ? 0.904382 : 1.0) * was) > 1e-6)
          FAIL_CHECK("element " << i << " went from " << was << " to " << is);
      }
    }
    CHECK(matrices == 3 + 2 * 7);  // token and position embedding, head; q, k, v, out, up, gate, down of two layers
  }
}

TEST_CASE("the gradient norm does not overflow where its elements are finite") {
  TwoParameters p("sgd", {}, 50);
  std::fill_n(p.gradient(0), 50, real(1e20));
  std::fill_n(p.gradient(1), 50, real(1e20));
  const double norm = p.optimizer().combine({p.gradient(0)});
  CHECK(norm == Approx(1e21));
  p.optimizer().step(p.gradient(0), 1, 1 / norm, 1);  // clipped to norm 1
  for (int64_t i = 0; i < 50; ++i) CHECK(p.m(i) == Approx(-0.1));
}

TEST_CASE("clipping scales the whole gradient by one factor") {
  TwoParameters p("sgd", {});
  p.gradient(0)[0] = 3;
  p.gradient(1)[0] = 4;
  const double norm = p.optimizer().combine({p.gradient(0)});
  CHECK(norm == Approx(5));
  p.optimizer().step(p.gradient(0), 1, 1 / norm, 1);
  CHECK(p.m() == Approx(-0.6));
  CHECK(p.v() == Approx(-0.8));
}

TEST_CASE("slots are summed in slot order, and only then measured") {
  CHECK(combined({3}) == std::pair{3.0, 3.0});
  CHECK(combined({real(0.3), real(-0.27)}).first == Approx(0.03).epsilon(1e-5));
  CHECK(combined({1, 2, 4, 8}) == std::pair{15.0, 15.0});
  // In fp32 1e8 + 1 is 1e8, so the order shows.
  if (sizeof(real) == sizeof(float)) {
    CHECK(combined({real(1e8), 1, real(-1e8)}).second == 0);
    CHECK(combined({real(1e8), real(-1e8), 1}).second == 1);
  }
}

TEST_CASE("a gradient that is not finite gives a norm that is not finite and the name of its parameter") {
  for (const real bad : {std::numeric_limits<real>::infinity(), std::numeric_limits<real>::quiet_NaN()}) {
    TwoParameters p("adam", {}, 3);
    p.gradient(1)[2] = bad;
    CHECK_FALSE(std::isfinite(p.optimizer().combine({p.gradient(0)})));
    CHECK(p.optimizer().first_non_finite(p.gradient(0)) == "v");
    p.gradient(0)[0] = bad;
    CHECK(p.optimizer().first_non_finite(p.gradient(0)) == "m");
  }
  TwoParameters sound("adam", {}, 3);
  CHECK(sound.optimizer().first_non_finite(sound.gradient(0)).empty());
}

TEST_CASE("norms and updates of many chunks are the same bits for any number of threads", "[threads]") {
  const int64_t size = 3 * 16384 + 5;  // four chunks of each parameter
  const auto run = [&](int count) {
    set_threads(count);
    TwoParameters p("adamw", {.weight_decay = 0.01}, size, 1);
    for (int64_t i = 0; i < size; ++i) {
      p.gradient(0)[i] = static_cast<real>(std::sin(static_cast<double>(i)));
      p.gradient(1)[i] = static_cast<real>(std::cos(static_cast<double>(i)));
    }
    const double norm = p.optimizer().combine({p.gradient(0)});
    const Optimizer::Norms norms = p.optimizer().step(p.gradient(0), 1e-3, 1, 1);
    set_threads(0);
    std::vector<double> out = {norm, norms.parameters, norms.update};
    for (int64_t i = 0; i < size; i += 997) out.push_back(static_cast<double>(p.m(i)));
    return out;
  };
  const std::vector<double> one = run(1);
  CHECK(one[0] == Approx(std::sqrt(static_cast<double>(size))).epsilon(1e-5));  // sin^2 + cos^2 = 1
  for (const int count : {2, 3, 8}) CHECK(run(count) == one);
}
