#include "normlab/norm.h"

#include "core/text.h"

namespace normlab {

double NormSite::option(std::string_view name) const {
  return option_value(choice_->options, choice_->def->options, name);
}

Var NormSite::param(std::string_view name, int64_t length, double initial, bool trainable) const {
  ParamSpec spec;
  spec.name = graph_->path(name);
  spec.shape = {length};
  spec.mean = initial;
  spec.trainable = trainable;
  return graph_->param(spec);
}

Var NormSite::gain(double initial, bool unit_offset) const {
  if (!affine()) return {};
  const double first = choice_->gain * initial;
  const Var weight = param("weight", width_, unit_offset ? first - 1 : first, true);
  return unit_offset ? normlab::affine(weight, 1, 1) : weight;
}

Var NormSite::bias(double initial) const { return affine() ? param("bias", width_, initial, true) : Var{}; }
Var NormSite::number(std::string_view name, double initial) const { return param(name, 1, initial, true); }
Var NormSite::state(std::string_view name, double initial) const { return param(name, width_, initial, false); }

Var apply_norm(Graph& graph, const NormChoice& choice, std::string_view name, Var x) {
  if (choice.def == nullptr) return x;
  if (choice.gain != 1 && !choice.affine)
    graph.fail(str("the initial gain ", choice.gain, " of '", name, "' needs norm.affine = true"));
  const Graph::Scope scope(graph, name);
  const NormSite site(graph, choice, x.shape().cols());
  if (choice.bf16_statistics) return choice.def->define(site, x);
  const Graph::KeepFp32 inside(graph);
  const Var y = choice.fused && choice.def->fused != nullptr ? choice.def->fused(site, x) : choice.def->define(site, x);
  graph.round(y);
  return y;
}

}  // namespace normlab
