// A norm on a few numbers, with its gradients, under every kernel table.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "kernel_tables.h"
#include "normlab/norm.h"
#include "test.h"

namespace normlab {

// loss = sum of w x, so that the gradient of x is w.
class Weighted final : public Op {
 public:
  explicit Weighted(std::vector<real> w) : w_(std::move(w)) {}
  std::string_view name() const override { return "weighted"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override { *c.out().data = 0; }
  void backward(const OpContext& c) const override {
    const View dx = c.grad(0).view;
    for (int64_t r = 0; r < dx.rows; ++r) std::copy_n(w_.data() + r * dx.cols, dx.cols, dx.row(r));
  }

 private:
  std::vector<real> w_;
};

inline ParamSpec vector_of(const char* name, Shape shape) {
  ParamSpec spec;
  spec.name = name;
  spec.shape = shape;
  return spec;
}

// A norm on (1, T, C) numbers, with its gradients under the cotangent dy.
struct Normed {
  std::vector<double> y, dx, dgain, dbias;
  std::map<std::string, double> dnumbers;
  std::set<std::string> params;
};

struct Setup {
  std::string norm;
  bool fused = true;
  double eps = 1e-5;
  Options options = {};
  Precision precision = Precision::fp32;
  bool affine = true;
  std::optional<real> gain = {}, bias = {};  // none: as the norm starts them
  std::map<std::string, real> numbers = {};  // learned numbers by name, to set and to see the gradients of
  std::vector<int32_t> targets = {};         // none: all take part
  const NormDef* def = nullptr;              // of a norm that is not registered
};

inline Normed normed(const Setup& s, int64_t time, int64_t width, const std::vector<real>& x,
                     std::vector<real> dy = {}) {
  ParamStore store;
  Graph graph(store, {1, time}, s.precision);
  NormChoice choice;
  choice.def = s.def != nullptr ? s.def : find_norm(s.norm);
  choice.eps = s.eps;
  choice.fused = s.fused;
  choice.options = s.options;
  choice.affine = s.affine;
  dy.resize(x.size());
  const Var y = apply_norm(graph, choice, "norm", affine(graph.param(vector_of("x", {1, time, width})), 1, 0));
  graph.keep(y);
  graph.set_loss(graph.append(std::make_unique<Weighted>(std::move(dy)), {y}, {1}));
  graph.plan(Plan::training);
  store.allocate();
  store.initialize(1);
  std::copy(x.begin(), x.end(), store.value(store.find("x")));
  const int gain = store.find("norm.weight"), bias = store.find("norm.bias");
  const auto fill = [&](int p, real value) { std::fill_n(store.value(p), store.spec(p).shape.count(), value); };
  if (gain >= 0 && s.gain) fill(gain, *s.gain);
  if (bias >= 0 && s.bias) fill(bias, *s.bias);
  for (const auto& [name, value] : s.numbers) fill(store.find("norm." + name), value);
  std::vector<int32_t> targets = s.targets;
  targets.resize(static_cast<std::size_t>(time));
  Pass pass;
  pass.targets = targets.data();
  graph.allocate_shared();
  graph.prepare();
  Workspace work(graph);
  work.poison();
  graph.forward(work, pass);
  graph.backward(work, pass);
  Normed out;
  for (int64_t r = 0; r < time; ++r) {
    const real* row = graph.value(work, y).row(r);
    out.y.insert(out.y.end(), row, row + width);
  }
  const auto gradient = [&](int p) {
    const int64_t n = p < 0 ? 0 : store.spec(p).shape.count();
    return p < 0 ? std::vector<double>() : std::vector<double>(work.gradient(p), work.gradient(p) + n);
  };
  out.dx = gradient(store.find("x"));
  out.dgain = gradient(gain), out.dbias = gradient(bias);
  for (const auto& [name, value] : s.numbers) out.dnumbers[name] = gradient(store.find("norm." + name))[0];
  for (int p = 0; p < store.count(); ++p) out.params.insert(store.spec(p).name);
  out.params.erase("x");
  return out;
}

inline void check_near(const std::vector<double>& found, const std::vector<double>& wanted, double tolerance) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i, found[i], wanted[i]);
    CHECK(std::abs(found[i] - wanted[i]) <= tolerance);
  }
}

// body(setup) for each of them under each kernel table.
inline void for_each_path(const std::vector<Setup>& setups, const std::function<void(const Setup&)>& body) {
  for (const KernelTable* table : runnable_tables()) {
    choose_kernels(table->name);
    for (const Setup& s : setups) {
      CAPTURE(table->name, s.norm, s.fused);
      body(s);
    }
  }
  choose_kernels("");
}

}  // namespace normlab
