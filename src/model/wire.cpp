// What a placement wires with.
#include "normlab/placement.h"

namespace normlab {

double Wire::option(std::string_view name) const { return option_value(options, placement().options, name, layers); }

Var Wire::norm(std::string_view site, Var x, double gain) const {
  if (gain == 1) return apply_norm(graph, *norm_choice, site, x);
  NormChoice scaled = *norm_choice;
  scaled.gain = gain;
  return apply_norm(graph, scaled, site, x);
}

Var Wire::head_norm(std::string_view site, Var x, int64_t heads) const {
  const bool per_token = norm_choice->def != nullptr && norm_choice->def->reach == Reach::token;
  return per_token ? graph.merge(norm(site, graph.split(x, heads))) : norm(site, x);
}

Var Wire::learned(std::string_view name, double initial, int64_t count) const {
  ParamSpec spec;
  spec.name = graph.path(name);
  spec.shape = {count};
  spec.mean = initial;
  return graph.param(spec);
}

}  // namespace normlab
