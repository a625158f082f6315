#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "train/layer_ranges.h"
#include "train/run_config.h"

namespace normlab {

namespace {

constexpr double kHuge = 9.3e18;  // any integer that fits 64 bits; the parser refuses larger ones

template <class Registry>
std::vector<std::string> names(const Registry& registry) {
  std::vector<std::string> out;
  for (const auto& entry : registry) {
    if constexpr (std::is_pointer_v<std::decay_t<decltype(entry)>>) {
      out.emplace_back(entry->name);
    } else {
      out.emplace_back(entry.name);
    }
  }
  return out;
}

std::vector<std::string> per_token_norms() {
  std::vector<std::string> out;
  for (const NormDef* norm : all_norms()) {
    if (norm->reach == Reach::token) out.emplace_back(norm->name);
  }
  return out;
}

class List {
 public:
  void integer(std::string key, int64_t& value, double min, double max, std::string help) {
    out.push_back({std::move(key), std::move(help), &value, min, max, {}, false, false, false});
  }
  void number(std::string key, double& value, double min, double max, std::string help, bool allows_auto = false) {
    out.push_back({std::move(key), std::move(help), &value, min, max, {}, allows_auto, false, false});
  }
  void pair(std::string key, std::array<double, 2>& value, double min, double max, std::string help) {
    out.push_back({std::move(key), std::move(help), &value, min, max, {}, false, false, false});
  }
  void on_off(std::string key, bool& value, std::string help) {
    out.push_back({std::move(key), std::move(help), &value, 0, 1, {}, false, false, false});
  }
  void text(std::string key, std::string& value, std::vector<std::string> choices, std::string help) {
    out.push_back({std::move(key), std::move(help), &value, 0, 0, std::move(choices), false, false, false});
  }
  void texts(std::string key, std::vector<std::string>& value, std::string help) {
    out.push_back({std::move(key), std::move(help), &value, 0, 0, {}, false, false, false});
  }
  // Norms, or placements, of one model that name an option alike share it.
  void options(std::string_view section, Options& values, const std::vector<OptionSpec>& specs) {
    for (const OptionSpec& spec : specs) {
      const std::string key = str(section, ".", spec.name);
      if (std::any_of(out.begin(), out.end(), [&](const Field& f) { return f.key == key; })) continue;
      const auto at = values.try_emplace(std::string(spec.name), spec.standard).first;
      out.push_back({key,
                     std::string(spec.help),
                     &at->second,
                     spec.min,
                     spec.max,
                     {spec.words.begin(), spec.words.end()},
                     spec.rule != nullptr,
                     spec.kind == OptionSpec::Kind::integer,
                     spec.kind == OptionSpec::Kind::boolean});
    }
  }
  std::vector<Field> out;
};

}  // namespace

RunConfig::RunConfig()
    : attention_scale(std::numeric_limits<double>::quiet_NaN()), norm_eps(std::numeric_limits<double>::quiet_NaN()) {}

std::vector<const NormDef*> norms_of(const RunConfig& c) {
  std::vector<const NormDef*> out;
  std::vector<std::string> names = names_in_ranges(c.layer_norm);
  names.insert(names.begin(), c.norm);
  for (const std::string& name : names) {
    const NormDef* norm = find_norm(name);
    if (norm != nullptr && std::find(out.begin(), out.end(), norm) == out.end()) out.push_back(norm);
  }
  return out;
}

std::vector<const Placement*> placements_of(const RunConfig& c) {
  std::vector<const Placement*> out;
  for (const std::string& name :
       c.layer_placement.empty() ? std::vector{c.placement} : names_in_ranges(c.layer_placement))
    if (const Placement* placement = find_placement(name)) out.push_back(placement);
  return out;
}

std::vector<Field> fields(RunConfig& c) {
  List f;
  f.text("run.name", c.name, {}, "run directory below --out (default \"runs\")");
  f.integer("run.seed", c.seed, 0, kHuge, "seed of initialisation, batches and dropout");
  f.text(
      "run.precision", c.precision, {"fp32", "bf16"},
      "bf16 rounds activations and operands of products to bfloat16; parameters, sums and norm statistics stay fp32");

  f.integer("model.layers", c.layers, 1, 100000, "N; each layer is an attention and a feed-forward sub-layer");
  f.integer("model.width", c.width, 1, 65536, "channels of the residual stream");
  f.integer("model.heads", c.heads, 1, 65536, "attention heads; divides width");
  f.integer("model.kv_heads", c.kv_heads, 0, 65536, "heads of keys and values, shared by groups of heads; 0 = heads");
  f.integer("model.ffn_width", c.ffn_width, 0, 1 << 20, "hidden channels of the feed-forward branch; 0 = 4 * width");
  f.text("model.activation", c.activation, {"relu", "gelu", "gelu_tanh", "silu", "swiglu", "geglu"},
         "of the feed-forward branch");
  f.integer("model.context", c.context, 1, 1 << 20, "tokens of a training window");
  f.text("model.position", c.position, {"learned", "sinusoidal", "rope", "none"}, "how the model knows positions");
  f.text("model.norm", c.norm, names(all_norms()), "norm layer (normlab list norms)");
  f.text("model.placement", c.placement, names(all_placements()), "where norms stand (normlab list placements)");
  f.texts("model.layer_norm", c.layer_norm,
          "norms by layer, such as [\"layernorm:0-5\", \"rmsnorm:6-23\"]; [] = model.norm in all");
  f.texts("model.layer_placement", c.layer_placement,
          "placements by layer, such as [\"post:0-5\", \"pre:6-23\"]; [] = model.placement in all");
  f.text("model.final_norm", c.final_norm, {"auto", "on", "off"},
         "norm before the head; auto = the placement's own rule");
  f.text("model.qk_norm", c.qk_norm, per_token_norms(), "per-token norm of queries and keys");
  f.text("model.qk_norm_over", c.qk_norm_over, {"head", "width"},
         "each head by itself, its weights shared by the heads, or all heads' channels at once");
  f.text("model.qk_norm_at", c.qk_norm_at, {"before_rope", "after_rope"}, "after the projection, or after RoPE");
  f.text("model.v_norm", c.v_norm, per_token_norms(), "per-token norm of each head's values, after projection");
  f.number("model.attention_scale", c.attention_scale, 1e-6, 1e6,
           "factor on the products of queries and keys; auto = 1 / sqrt(width / heads)", true);
  f.on_off("model.attention_scale_learned", c.attention_scale_learned,
           "one learned factor per layer, which starts at attention_scale");
  f.number("model.attention_cap", c.attention_cap, 0, 1e6,
           "c: attention's scores s become c tanh(s / c), after the scale; 0 = off");
  f.number("model.logit_cap", c.logit_cap, 0, 1e6, "the same of the model's output; 0 = off");
  f.on_off("model.bias", c.bias, "biases in linear layers (never in the head)");
  f.on_off("model.tie_embeddings", c.tie_embeddings, "the head shares the token embedding's matrix");
  f.number("model.dropout", c.dropout, 0, 0.999, "rate, after the embedding and after every branch");
  f.text("model.init", c.init, names(all_inits()), "initialisation (normlab list inits)");

  f.number("norm.eps", c.norm_eps, 0, 1e6,
           "of every norm in the model, those of queries, keys and values too; auto = the default of the first that "
           "reads it",
           true);
  f.on_off("norm.affine", c.norm_affine, "learned gain and bias in norms");
  f.on_off("norm.fused", c.norm_fused,
           "use the fused kernel where the norm has one; false = its definition from ordinary ops");
  f.text("norm.statistics", c.norm_statistics, {"fp32", "bf16"},
         "of norms under precision bf16; bf16 shows the harm of rounding them too");
  for (const NormDef* norm : norms_of(c)) f.options("norm", c.norm_options, norm->options);
  for (const std::string& name : {c.qk_norm, c.v_norm})
    if (const NormDef* norm = find_norm(name)) f.options("norm", c.norm_options, norm->options);
  for (const Placement* placement : placements_of(c)) f.options("placement", c.placement_options, placement->options);

  f.text("data.source", c.data.source, names(data_sources()), "where tokens come from (normlab list data)");
  f.text("data.path", c.data.path, {}, "file of the text and tokens sources; relative to the working directory");
  f.text("data.tokenizer", c.data.tokenizer, {"char", "byte"}, "of the text source");
  f.number("data.validation", c.data.validation, 0, 0.999,
           "share of the tokens kept for validation, from the end; 0 = no evaluation");
  f.number("data.padding", c.data.padding, 0, 0.5, "mean share of each window that is padding, its targets ignored");
  f.integer("data.tokens", c.data.tokens, 1, 1e9, "size of the generated sources");
  f.integer("data.states", c.data.states, 2, 1024, "states of the markov source");
  f.integer("data.branches", c.data.branches, 2, 1024, "successors of each markov state");
  f.integer("data.seed", c.data_seed, 0, kHuge, "seed of the generated sources");

  f.integer("train.steps", c.steps, 1, 1e9, "updates");
  f.integer("train.batch", c.batch, 1, 1 << 20, "sequences per update");
  f.integer("train.accumulate", c.accumulate, 1, 1 << 20,
            "micro-batches per update; divides batch, changes memory, not the mathematics");
  f.integer("train.slots", c.slots, 0, 4096,
            "pieces a micro-batch is cut into for threads; 0 = largest divisor up to 4; results depend on it, not on "
            "the threads");
  f.on_off(
      "train.recompute", c.recompute,
      "compute the activations inside a layer again for its backward instead of keeping them: less memory, more time, "
      "the same numbers");
  f.text("train.optimizer", c.optimizer, names(all_optimizers()), "normlab list optimizers");
  f.number("train.lr", c.lr, 0, 1e30, "learning rate at the peak of the schedule");
  f.integer("train.warmup", c.warmup, 0, 1e9, "updates of linear warmup; the first uses lr / warmup");
  f.text("train.schedule", c.schedule, names(all_schedules()), "normlab list schedules");
  f.number("train.min_lr", c.min_lr, 0, 1e30, "where linear, cosine and wsd end");
  f.pair("train.betas", c.betas, 0, 0.9999999, "Adam's decay of the mean and of the square of the gradient");
  f.number("train.eps", c.adam_eps, 1e-30, 1, "Adam's eps, added after the bias correction");
  f.number("train.momentum", c.momentum, 0, 0.999999, "of sgd");
  f.number("train.weight_decay", c.weight_decay, 0, 1e6,
           "decoupled, times the scheduled rate; on matrices only, never on norms and biases");
  f.number(
      "train.z_loss", c.z_loss, 0, 1e6,
      "weight of (log Z)^2 in the objective, Z = softmax's divisor at each target; not in the losses shown; 0 = off");
  f.number("train.clip", c.clip, 0, 1e30, "largest norm of the whole gradient; 0 = off");

  f.integer("eval.every", c.eval_every, 0, 1e9, "updates between evaluations; 0 = only at the end");
  f.integer("eval.batches", c.eval_batches, 1, 1 << 20, "validation batches of an evaluation");
  f.integer("checkpoint.every", c.checkpoint_every, 0, 1e9,
            "updates between checkpoints; 0 = at the end and on interrupt");
  f.integer("probe.every", c.probe_every, 0, 1e9,
            "updates between looks into every layer, written to layers.csv; 0 = none");
  return std::move(f.out);
}

std::string Field::text() const {
  if (const auto* i = std::get_if<int64_t*>(&value)) return std::to_string(**i);
  if (const auto* b = std::get_if<bool*>(&value)) return **b ? "true" : "false";
  if (const auto* s = std::get_if<std::string*>(&value)) return toml_string(**s);
  if (const auto* p = std::get_if<std::array<double, 2>*>(&value)) {
    return str("[", toml_number((**p)[0]), ", ", toml_number((**p)[1]), "]");
  }
  if (const auto* list = std::get_if<std::vector<std::string>*>(&value)) {
    std::vector<std::string> items;
    for (const std::string& item : **list) items.push_back(toml_string(item));
    return str("[", join(items, ", "), "]");
  }
  const double number = *std::get<double*>(value);
  if (std::isnan(number)) return "\"auto\"";
  if (!choices.empty()) return toml_string(choices[static_cast<std::size_t>(number)]);
  if (on_off) return number != 0 ? "true" : "false";
  return whole ? std::to_string(static_cast<int64_t>(number)) : toml_number(number);
}

}  // namespace normlab
