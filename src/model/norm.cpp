#include "normlab/norm.h"

#include "core/text.h"

namespace normlab {

double NormSite::option(std::string_view name) const {
  return option_value(choice_->options, choice_->def->options, name);
}

Var NormSite::vector(std::string_view name, double initial, bool trainable) const {
  ParamSpec spec;
  spec.name = graph_->path(name);
  spec.shape = {width_};
  spec.mean = initial;
  spec.trainable = trainable;
  return graph_->param(spec);
}

Var NormSite::gain(double initial) const {
  return choice_->affine ? vector("weight", choice_->gain * initial, true) : Var{};
}
Var NormSite::bias(double initial) const { return choice_->affine ? vector("bias", initial, true) : Var{}; }
Var NormSite::state(std::string_view name, double initial) const { return vector(name, initial, false); }

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
