// Placements: where norms stand around a residual branch. A placement is a record whose code is the paper's formula:
//
//   .sublayer = [](Wire& w, Stream s, Branch& f) { s.x = w.norm("norm_out", add(s.x, f(s.x))); return s; }     //
//   Post-Norm
//
// A new one is one file with such a record and one line in src/placements/registry.cpp.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "normlab/graph.h"
#include "normlab/init.h"
#include "normlab/norm.h"
#include "normlab/options.h"

namespace normlab {

struct Placement;

// What goes from sub-layer to sub-layer: the residual stream x and, where a placement carries them, others: a second
// stream, a skip over two sub-layers, a sum that waits, a weight that they share.
struct Stream {
  Var x, y = {}, z = {};
};

// The attention or feed-forward branch F of one sub-layer; the placement calls it exactly once.
using Branch = std::function<Var(Var)>;

// Where a placement may act inside a branch: on queries, keys and values after their projection, on the mixed values
// before the attention's output projection, on the activated hidden channels before the feed-forward's second matrix.
enum class Inside { query, key, value, mixed, hidden };

// What a placement sees while it wires one sub-layer.
class Wire {
 public:
  Wire(Graph& graph_, const Options& options_, int64_t layers_) : graph(graph_), layers(layers_), options(options_) {}
  Graph& graph;
  const int64_t layers;  // N
  int64_t layer = 0;     // 0 .. N - 1
  int64_t sublayer = 0;  // 0 .. 2 N - 1: attention, ffn, attention, ...
  // The configured norm at a site of this sub-layer: "norm_in" (before the branch), "norm_out" (after the branch,
  // before the sum), "norm_post" (after the sum), "norm_mid" (inside the branch). Its gain starts at `gain` times what
  // the norm says.
  Var norm(std::string_view site, Var x, double gain = 1) const;
  // The same for each of the heads side by side in x, with one gain for all. Norms that look across positions treat
  // each channel by itself anyway and get x whole.
  Var head_norm(std::string_view site, Var x, int64_t heads) const;
  // A learned vector `name` of `count` elements, without weight decay.
  Var learned(std::string_view name, double initial, int64_t count) const;
  double option(std::string_view name) const;  // of the placement, from [placement]

  // What holds from here on.
  void enter(const Placement& placement, const NormChoice& norm, int64_t layer_) {
    current = &placement, norm_choice = &norm, layer = layer_;
  }
  const Placement& placement() const { return *current; }

 private:
  const NormChoice* norm_choice = nullptr;
  const Placement* current = nullptr;
  const Options& options;
};

// Variances over all channels and positions of the first training batch, in a forward pass at initialisation.
struct SublayerVariances {
  double stream = 0;  // of the stream that enters
  double branch = 0;  // of the branch's output
};

// A start that is measured rather than given. Where the placement's switch `option` is on, one forward pass at
// initialisation runs with the values that `sublayer` declares; then the learned vector `vector` of each of its
// sub-layers is filled with that sub-layer's number among those that `start` gives.
struct MeasuredStart {
  std::string_view option, vector;
  std::vector<double> (*start)(const std::vector<SublayerVariances>& sublayers) = nullptr;  // nullptr = none
};

struct Placement {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
  bool final_norm = false;  // whether final_norm = "auto" puts a norm before the head
  bool has_norms = true;    // whether it has any site for the norm besides that one
  std::vector<OptionSpec> options = {};
  Stream (*sublayer)(Wire& w, Stream s, Branch& f) = nullptr;
  // What stands inside the branches, heads of x lying side by side (1 for hidden channels); nullptr = x goes on.
  Var (*inside)(Wire& w, Inside at, Var x, int64_t heads) = nullptr;
  const DepthGain* init_gain = nullptr;  // what init = "auto" multiplies Xavier's standard deviations by
  MeasuredStart measured = {};
  // First and last step around the stack; nullptr = the stream is x / the result is x.
  Stream (*start)(Wire& w, Var x) = nullptr;
  Var (*finish)(Wire& w, Stream s) = nullptr;
};

// The gain that `init` applies in layers of this placement; nullptr = none.
inline const DepthGain* gain_of(const InitDef& init, const Placement& placement) {
  return init.placement_gain ? placement.init_gain : init.gain;
}

// Whether learned vectors of this placement start from measured values.
inline bool is_measured(const Placement& placement, const Options& options) {
  return placement.measured.start != nullptr &&
         option_value(options, placement.options, placement.measured.option) != 0;
}

// src/placements/registry.cpp
const std::vector<const Placement*>& all_placements();
const Placement* find_placement(std::string_view name);
// As register_norm; `sublayer` must not be missing.
void register_placement(const Placement& placement);
void register_placement(const Placement&& placement) = delete;

}  // namespace normlab
