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
  has_gain_ = true;
  const double first = choice_->gain * initial;
  const Var weight = param("weight", width_, unit_offset ? first - 1 : first, true);
  return unit_offset ? normlab::affine(weight, 1, 1) : weight;
}

Var NormSite::common_gain(double initial) const {
  if (!affine()) return {};
  has_gain_ = true;
  return param("weight", 1, choice_->gain * initial, true);
}

Var NormSite::bias(double initial) const { return affine() ? param("bias", width_, initial, true) : Var{}; }
Var NormSite::number(std::string_view name, double initial) const { return param(name, 1, initial, true); }
Var NormSite::vector(std::string_view name, double initial) const { return param(name, width_, initial, true); }
Var NormSite::state(std::string_view name, double initial) const { return state(name, initial, width_); }
Var NormSite::state(std::string_view name, double initial, int64_t length) const {
  return param(name, length, initial, false);
}

Var apply_norm(Graph& graph, const NormChoice& choice, std::string_view name, Var x) {
  if (choice.def == nullptr) return x;
  const Graph::Scope scope(graph, name);
  const NormSite site(graph, choice, x.shape().cols());
  const auto y = [&] {
    if (choice.bf16_statistics) return choice.def->define(site, x);
    const Graph::KeepFp32 inside(graph);
    const Var out =
        choice.fused && choice.def->fused != nullptr ? choice.def->fused(site, x) : choice.def->define(site, x);
    graph.round(out);
    return out;
  }();
  if (choice.gain != 1 && !site.has_gain())
    graph.fail(
        str("a gain that starts at ", choice.gain, " times the usual needs ",
            choice.affine ? str("a norm with a gain, which '", choice.def->name, "' has not") : "norm.affine = true"));
  return y;
}

}  // namespace normlab
