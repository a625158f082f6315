// A placement on one token, its branches given, against the same written out with plain vectors.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <valarray>
#include <vector>

#include "../model_probe.h"
#include "core/text.h"

namespace normlab {

using V = std::valarray<double>;

// LayerNorm of a row by its definition.
inline V ln(const V& x) {
  const double n = static_cast<double>(x.size()), mean = x.sum() / n;
  const V centered = x - mean;
  return centered / std::sqrt((centered * centered).sum() / n + 1e-5);
}

inline const V kX = {1, 2, 3, 4}, kF = {4, 0, 1, -2}, kG = {-1, 0.5, 3, 0.25}, kH = {0.3, -2, 1, 1};

// One token of width 4 through sub-layers whose branches give the rows `f` whatever they see.
struct Wired {
  std::vector<V> seen, stream;  // what each branch sees, the stream after it
  V result;                     // after the placement's last step
};

inline Wired wired(const Placement& p, const std::vector<V>& f, int64_t layers = 2, const Options& options = {},
                   const std::map<std::string, V>& weights = {}) {
  ParamStore store;
  Graph graph(store, {1, 1});
  NormChoice norm;
  norm.def = find_norm("layernorm");
  norm.eps = 1e-5;
  const auto row = [&](const std::string& of) {
    ParamSpec spec;
    spec.name = of;
    spec.shape = {1, 1, 4};
    return affine(graph.param(spec), 1, 0);
  };
  Wire wire(graph, options, layers);
  wire.enter(p, norm, 0);
  std::vector<Var> seen, stream;
  const Var x = row("x");
  Stream s = p.start != nullptr ? p.start(wire, x) : Stream{x, {}};
  for (std::size_t i = 0; i < f.size(); ++i) {
    wire.sublayer = static_cast<int64_t>(i), wire.layer = wire.sublayer / 2;
    const Graph::Scope scope(graph, str(i));
    Branch branch = [&](Var in) {
      seen.push_back(affine(in, 1, 0));
      return row(str("f", i));
    };
    s = p.sublayer(wire, s, branch);
    stream.push_back(affine(s.x, 1, 0));
  }
  const Var result = affine(p.finish != nullptr ? p.finish(wire, s) : s.x, 1, 0);
  for (const std::vector<Var>& all : {seen, stream, {result}}) {
    for (const Var v : all) graph.keep(v);
  }
  graph.plan(Plan::inference);
  store.allocate();
  store.initialize(1);
  const auto set = [&](const std::string& of, const V& values) {
    REQUIRE(store.find(of) >= 0);
    REQUIRE(store.spec(store.find(of)).shape.count() == static_cast<int64_t>(values.size()));
    std::transform(std::begin(values), std::end(values), store.value(store.find(of)),
                   [](double value) { return static_cast<real>(value); });
  };
  set("x", kX);
  for (std::size_t i = 0; i < f.size(); ++i) set(str("f", i), f[i]);
  for (const auto& [of, values] : weights) set(of, values);
  Workspace work(graph, false);
  graph.prepare();
  graph.forward(work, Pass{});
  const auto values = [&](Var v) {
    V out(4);
    std::copy_n(graph.value(work, v).row(0), 4, std::begin(out));
    return out;
  };
  Wired out;
  for (const Var v : seen) out.seen.push_back(values(v));
  for (const Var v : stream) out.stream.push_back(values(v));
  out.result = values(result);
  return out;
}

inline Wired wired(const std::string& name, const std::vector<V>& f, int64_t layers = 2, const Options& options = {},
                   const std::map<std::string, V>& weights = {}) {
  return wired(*find_placement(name), f, layers, options, weights);
}

inline void check_row(const V& got, const V& wanted) {
  check_close({std::begin(got), std::end(got)}, {std::begin(wanted), std::end(wanted)}, 2e-5);
}

}  // namespace normlab
