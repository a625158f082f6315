// Initialisations: the distributions that matrices, and the biases beside them, are drawn from. An init is a record
// whose code is the formula; a new one is one file with such a record and one line in src/inits/registry.cpp.
#pragma once

#include <cmath>
#include <string_view>
#include <vector>

#include "normlab/params.h"

namespace normlab {

// What an init may know of a matrix.
struct MatrixInfo {
  Role role;
  int64_t fan_in, fan_out;
  int64_t width;
  int64_t layers;  // N
  int64_t layer;   // 0-based; -1 outside the stack

  bool is_embedding() const { return role == Role::token_embedding || role == Role::position_embedding; }
  // The two of each layer whose result is added to the residual stream.
  bool writes_to_stream() const { return role == Role::attention_out || role == Role::ffn_down; }
};

// A distribution around 0. `std` is that of the values really drawn.
struct Draw {
  ParamSpec::Fill fill = ParamSpec::Fill::constant;
  double std = 0;

  static Draw normal(double std) { return {ParamSpec::Fill::normal, std}; }
  static Draw uniform(double bound) { return {ParamSpec::Fill::uniform, bound / std::sqrt(3.0)}; }  // U(-bound, bound)
  // N(0, whole_std^2), cut at kTruncation whole_std.
  static Draw truncated(double whole_std) { return {ParamSpec::Fill::truncated, kTruncatedStd * whole_std}; }
};

// A factor by depth on the standard deviation of some matrices: what a placement's paper adds to Xavier's init.
struct DepthGain {
  std::string_view option;  // of the placement that has it; sets the factor there
  std::string_view rule;
  double (*factor)(int64_t layers);  // N
  bool (*scales)(const MatrixInfo& m);
};

struct InitDef {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
  Draw (*matrix)(const MatrixInfo& m) = nullptr;
  Draw (*bias)(const MatrixInfo& m) = nullptr;  // beside the matrix m; nullptr = zeros
  const DepthGain* gain = nullptr;              // multiplies what `matrix` gives, under any placement
  bool placement_gain = false;                  // the gain is that of the layer's own placement
};

// src/inits/registry.cpp
const std::vector<const InitDef*>& all_inits();
const InitDef* find_init(std::string_view name);  // nullptr where unknown

}  // namespace normlab
