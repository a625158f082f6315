// Norm layers. A norm is defined by composing ordinary ops, so its gradient comes free; a fused kernel is optional and
// tested equal. A new norm is one file that fills in a NormDef and one line in src/norms/registry.cpp; it is then
// selectable, listed, gradient-checked and tried under every placement, with no other edit.
#pragma once

#include <string_view>
#include <vector>

#include "normlab/graph.h"
#include "normlab/ops.h"
#include "normlab/options.h"

namespace normlab {

struct NormDef;

// A norm as chosen in a config.
struct NormChoice {
  const NormDef* def = nullptr;
  double eps = 0;
  bool affine = true;  // false: no gain, no bias
  bool fused = true;   // false: always the definition
  // Under Precision::bf16: every step of the definition, its statistics too, is rounded to bfloat16, as code without
  // care for it does.
  bool bf16_statistics = false;
  Options options;
  double gain = 1;  // factor on the gain's initial value
};

// One place in the model where a norm stands; what a NormDef builds with.
class NormSite {
 public:
  NormSite(Graph& graph, const NormChoice& choice, int64_t width) : graph_(&graph), choice_(&choice), width_(width) {}
  Graph& graph() const { return *graph_; }
  int64_t width() const { return width_; }  // length of the last dimension
  double eps() const { return choice_->eps; }
  double option(std::string_view name) const;
  bool affine() const { return choice_->affine; }
  // Parameters `weight` and `bias` of shape (width). Absent Vars when affine is off: scale_channels and shift_channels
  // then pass x on. `unit_offset`: the parameter is w = gain - 1.
  Var gain(double initial = 1, bool unit_offset = false) const;
  Var common_gain(double initial) const;  // `weight` as one number for all channels, shape (1)
  Var bias(double initial = 0) const;
  Var number(std::string_view name, double initial) const;  // a learned number, shape (1), whatever affine says
  Var vector(std::string_view name, double initial) const;  // the same per channel, shape (width)
  bool has_gain() const { return has_gain_; }               // once gain() or common_gain() has made one
  // A value per channel that is kept, saved and restored, but not trained: a running mean.
  Var state(std::string_view name, double initial) const;
  Var state(std::string_view name, double initial, int64_t length) const;

 private:
  Var param(std::string_view name, int64_t length, double initial, bool trainable) const;
  Graph* graph_;
  const NormChoice* choice_;
  int64_t width_;
  mutable bool has_gain_ = false;
};

// Over which positions a norm looks. Only Reach::token keeps a causal model causal.
enum class Reach {
  token,     // one token at a time
  sequence,  // all positions of the sequence: later tokens leak into earlier ones
  batch      // all sequences too: needs the whole batch in one piece; running statistics stand in at evaluation
};

struct NormDef {
  std::string_view name;
  std::string_view formula;
  std::string_view source;  // paper
  double default_eps = 1e-5;
  std::string_view eps_reason = "";
  Reach reach = Reach::token;
  bool shift_invariant = false;   // N(x + c) = N(x), up to eps; checked by a test
  bool scale_invariant = false;   // N(a x) = N(x) for a > 0, up to eps; checked by a test
  bool unit_length = false;       // |N(x)| = 1 before gain and bias, where others have sqrt(width); checked by a test
  bool channels_ordered = false;  // not N(P x) = P N(x) for a permutation P of the channels: groups, a first part
  // Rows where the formula has no derivative, by the names the gradient check tries ("zero", "constant", "small"; see
  // lab/gradcheck_cases.cpp).
  std::vector<std::string_view> rough = {};
  bool has_affine = true;  // false: neither gain nor bias, whatever norm.affine says
  // The switch among the options under which backward leaves a part of the derivative out, as the paper wants it. The
  // gradient check turns it off.
  std::string_view detaching = "";
  std::vector<OptionSpec> options = {};
  // A sentence of warning where these options make little sense at this width; "" else. nullptr = never.
  std::string (*caution)(const Options& options, int64_t width) = nullptr;
  // (B, T, width), or (B, T, H, width) as a norm of heads -> same shape
  Var (*define)(const NormSite& site, Var x) = nullptr;
  Var (*fused)(const NormSite& site, Var x) = nullptr;
};

// x through the norm `choice`, its parameters named graph.path(name).weight and so on. A choice without a def gives x.
Var apply_norm(Graph& graph, const NormChoice& choice, std::string_view name, Var x);

// An option that norms share: the gain of Gemma's RMSNorm and of Megatron's LayerNorm-1p.
inline OptionSpec unit_offset_option() {
  return {"unit_offset", 0, 0, 1, OptionSpec::Kind::boolean, "the gain is kept as w, from 0, and used as 1 + w"};
}

// src/norms/registry.cpp
const std::vector<const NormDef*>& all_norms();
const NormDef* find_norm(std::string_view name);  // nullptr where unknown
// Adds a norm from outside the library, which must live as long as the program; before anything else is called, as
// main_program does (normlab/main.h). RecordError where the name is taken or not of the form [a-z][a-z0-9_]*, where
// `define` is missing, or an option makes no sense.
void register_norm(const NormDef& norm);
void register_norm(const NormDef&& norm) = delete;

}  // namespace normlab
