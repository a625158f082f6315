// Initialisations: the distribution a matrix is drawn from.
#pragma once

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
};

struct Draw {
  ParamSpec::Fill fill = ParamSpec::Fill::normal;
  double std = 0;
};

struct InitDef {
  std::string_view name;
  std::string_view formula;
  std::string_view source;
  bool placement_gains = false;  // the placement's own gains multiply the standard deviation
  Draw (*matrix)(const MatrixInfo& m) = nullptr;
};

const std::vector<InitDef>& all_inits();
const InitDef* find_init(std::string_view name);

}  // namespace normlab
