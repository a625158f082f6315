#include "train/combinations.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/text.h"
#include "normlab/placement.h"
#include "train/layer_ranges.h"

namespace normlab {

namespace {

// Layers up to which a configuration is checked by recording its model; deeper ones show what does not fit when they
// are built.
constexpr int64_t kRecorded = 256;

// One key cannot hold two defaults.
template <class Records>
void require_like_options(const Records& records, std::string_view section, std::string_view key,
                          const std::function<bool(const std::string&)>& given,
                          const std::function<void(const std::string&, std::string_view)>& complain) {
  for (const auto* a : records)
    for (const auto* b : records)
      for (const OptionSpec& first : a->options)
        for (const OptionSpec& second : b->options) {
          const bool alike = first.rule == second.rule && (first.standard == second.standard ||
                                                           (std::isnan(first.standard) && first.rule != nullptr));
          if (first.name == second.name && !alike && !given(str(section, ".", first.name))) {
            complain(std::string(key), str("'", a->name, "' and '", b->name, "' have different defaults for '", section,
                                           ".", first.name, "' in one model (by '", key, "'): give it a value"));
          }
        }
}

void check_layer_ranges(const RunConfig& c, const std::function<bool(const std::string&)>& given,
                        const std::function<void(const std::string&, std::string_view)>& complain) {
  const auto check = [&](const char* key, const auto& ranges, const auto& registry) {
    try {
      entries_of_layers(key, ranges, registry, c.layers);
    } catch (const ConfigError& error) {
      complain(key, error.what());
    }
  };
  check("model.layer_norm", c.layer_norm, all_norms());
  check("model.layer_placement", c.layer_placement, all_placements());
  require_like_options(norms_of(c), "norm", "model.layer_norm", given, complain);
  require_like_options(placements_of(c), "placement", "model.layer_placement", given, complain);
  for (const auto& [key, name] : {std::pair("model.qk_norm", c.qk_norm), std::pair("model.v_norm", c.v_norm)}) {
    std::vector<const NormDef*> norms = norms_of(c);
    norms.push_back(find_norm(name));
    require_like_options(norms, "norm", key, given, complain);
  }
}

}  // namespace

void check_combinations(const RunConfig& c, const std::map<std::string, std::string>& where) {
  // The place of the key, or of another key that the sentence names, where the first one keeps its default.
  const auto complain = [&](const std::string& key, std::string_view what) {
    auto at = where.find(key);
    for (auto other = where.begin(); at == where.end() && other != where.end(); ++other) {
      if (what.find(str("'", other->first, "'")) != std::string_view::npos) at = other;
    }
    throw ConfigError(at == where.end() ? std::string(what) : str(at->second, ": ", what));
  };
  const auto given = [&](const std::string& key) { return where.count(key) > 0; };
  if (c.width % c.heads != 0)
    complain("model.heads", str("'model.width' (", c.width, ") must be a multiple of 'model.heads' (", c.heads, ")"));
  if (c.heads % c.kv_heads != 0) {
    complain("model.kv_heads",
             str("'model.heads' (", c.heads, ") must be a multiple of 'model.kv_heads' (", c.kv_heads, ")"));
  }
  if (c.position == "rope" && c.width / c.heads % 2 != 0) {
    complain("model.position", str("rotary positions need heads of even width, not ", c.width / c.heads));
  }
  if (c.batch % c.accumulate != 0) {
    complain("train.accumulate",
             str("'train.batch' (", c.batch, ") must be a multiple of 'train.accumulate' (", c.accumulate, ")"));
  }
  if (c.slots > 0 && c.batch / c.accumulate % c.slots != 0) {
    complain("train.slots",
             str("a micro-batch of ", c.batch / c.accumulate, " sequences does not divide into ", c.slots, " slots"));
  }
  check_layer_ranges(c, given, complain);
  for (const NormDef* norm : norms_of(c)) {
    if (norm->reach == Reach::batch && c.slots > 1)
      complain("train.slots",
               str("norm '", norm->name, "' needs the whole batch in one slot; leave 'train.slots' at 0"));
  }
  const auto require_divisors = [&](const NormDef& def, int64_t width, std::string_view of) {
    for (const OptionSpec& spec : def.options) {
      const auto value = static_cast<int64_t>(c.norm_options.at(std::string(spec.name)));
      if (spec.divides_width && width % value != 0)
        complain(str("norm.", spec.name), str("'norm.", spec.name, "' (", value, ") must divide ", of));
    }
  };
  for (const NormDef* norm : norms_of(c)) require_divisors(*norm, c.width, str("'model.width' (", c.width, ")"));
  const int64_t head_width = c.width / c.heads;
  for (const auto& [key, name] : {std::pair("model.qk_norm", c.qk_norm), std::pair("model.v_norm", c.v_norm)}) {
    const bool wide = key == std::string_view("model.qk_norm") && c.qk_norm_over == "width";
    const int64_t over = wide ? c.kv_heads * head_width : head_width;  // the keys' width divides that of the queries
    require_divisors(
        *find_norm(name), over,
        str(wide ? "the width of the keys (" : "the width of a head (", over, "), as '", key, "' is '", name, "'"));
  }
  for (const auto& [key, cap] :
       {std::pair("model.attention_cap", c.attention_cap), std::pair("model.logit_cap", c.logit_cap)})
    if (cap > 0 && cap < 1e-3) complain(key, str("'", key, "' must be 0 or at least 0.001, not ", cap));
  for (const Placement* placement : placements_of(c)) {
    const MeasuredStart& measured = placement->measured;
    for (const OptionSpec& spec : placement->options) {
      // Resolved configs name the option too; only a value other than the rule's is a wish.
      const bool wished = spec.name == measured.vector && c.placement_options.at(std::string(spec.name)) !=
                                                              option_value({}, placement->options, spec.name, c.layers);
      if (wished && is_measured(*placement, c.placement_options))
        complain(str("placement.", spec.name), str("'placement.", spec.name, "' is not read where 'placement.",
                                                   measured.option, "' = true; leave it at \"auto\""));
    }
  }
  if (c.norm_eps > 0 && c.norm_eps < 1e-37)
    complain("norm.eps", str("'norm.eps' must be 0 or at least 1e-37, which fp32 can hold, not ", c.norm_eps));
  if (c.norm_statistics == "bf16" && c.precision != "bf16")
    complain("norm.statistics", "'norm.statistics' = \"bf16\" needs 'run.precision' = \"bf16\"");
  if (c.min_lr > c.lr)
    complain("train.min_lr", str("'train.min_lr' (", c.min_lr, ") must not exceed 'train.lr' (", c.lr, ")"));
  const ScheduleDef& schedule = *find_schedule(c.schedule);
  if (c.min_lr > 0 && !schedule.uses_min_lr)
    complain("train.min_lr", str("schedule '", c.schedule, "' does not read 'train.min_lr'"));
  if (c.warmup > c.steps && schedule.uses_steps) {
    complain("train.warmup", str("'train.warmup' (", c.warmup, ") must not exceed 'train.steps' (", c.steps,
                                 ") with schedule '", c.schedule, "'"));
  }
  const OptimizerDef& optimizer = *find_optimizer(c.optimizer);
  if (c.weight_decay > 0 && !optimizer.reads_weight_decay) {
    complain("train.weight_decay", str("optimizer '", c.optimizer, "' does not read 'train.weight_decay'; adamw does"));
  }
  if (c.momentum > 0 && !optimizer.reads_momentum)
    complain("train.momentum", str("optimizer '", c.optimizer, "' does not read 'train.momentum'; sgd does"));
  for (const char* key : {"train.betas", "train.eps"}) {
    // Resolved configs name every key; only a value other than the default is a wish.
    const bool standard =
        key == std::string("train.eps") ? c.adam_eps == 1e-8 : c.betas == std::array<double, 2>{0.9, 0.999};
    if (given(key) && !optimizer.reads_betas && !standard)
      complain(key, str("optimizer '", c.optimizer, "' does not read '", key, "'"));
  }
  const bool file_source = c.data.source == "text" || c.data.source == "tokens";
  if (file_source && c.data.path.empty())
    complain("data.source", str("data source '", c.data.source, "' needs 'data.path'"));
  if (!file_source && !c.data.path.empty())
    complain("data.path", str("data source '", c.data.source, "' does not read 'data.path'"));
  if (c.data.source == "markov" && c.data.branches > c.data.states) {
    complain("data.branches",
             str("'data.branches' (", c.data.branches, ") must not exceed 'data.states' (", c.data.states, ")"));
  }
  if (c.layers <= kRecorded) {
    try {
      ParamStore store;
      Graph graph(store, {c.batch / c.accumulate, c.context});
      build_decoder(graph, model_config(c, 2));
    } catch (const ShapeError& error) {
      const std::string what = error.what();
      complain(what.find("norm") != std::string::npos ? "model.norm" : "model.placement",
               str(what, " ('model.norm' is '", c.norm, "', 'model.placement' is '", c.placement, "')"));
    }
  }
  if (c.name.empty() || c.name == "." || c.name == ".." || c.name.size() > 200 ||
      std::any_of(c.name.begin(), c.name.end(),
                  [](char ch) { return ch == '/' || static_cast<unsigned char>(ch) < 0x20 || ch == 0x7f; })) {
    complain("run.name", str("'run.name' must be a plain directory name of up to 200 bytes, not ", quote(c.name)));
  }
}

namespace {

const Placement& last_placement(const RunConfig& c) {
  const auto layers = entries_of_layers("model.layer_placement", c.layer_placement, all_placements(), c.layers);
  return layers.empty() ? *find_placement(c.placement) : *layers.back();
}

}  // namespace

std::vector<std::string> config_warnings(const RunConfig& c) {
  std::vector<std::string> out;
  const RunConfig standard;
  const auto unread = [&](std::string_view key, bool is_read, bool is_standard, std::string_view reader) {
    if (!is_read && !is_standard) out.push_back(str("'", key, "' has no effect: ", reader, " does not read it"));
  };
  const std::string source = str("data source '", c.data.source, "'");
  const std::vector<const Placement*> used = placements_of(c);
  const std::vector<const NormDef*> norms = norms_of(c);
  const bool generated = c.data.source != "text" && c.data.source != "tokens",
             norm_in_stream =
                 c.final_norm == "on" ||
                 std::any_of(used.begin(), used.end(), [](const Placement*p) { return p->has_norms || p->final_norm; }),
             any_norm = (norm_in_stream && (c.norm != "none" || !c.layer_norm.empty())) || c.qk_norm != "none" ||
                        c.v_norm != "none",
             any_affine =
                 any_norm && (find_norm(c.qk_norm)->has_affine || find_norm(c.v_norm)->has_affine ||
                              std::any_of(norms.begin(), norms.end(), [](const NormDef*n) { return n->has_affine; }));
  unread("data.tokens", generated, c.data.tokens == standard.data.tokens, source);
  unread("data.seed", generated, c.data_seed == standard.data_seed, source);
  unread("data.states", c.data.source == "markov", c.data.states == standard.data.states, source);
  unread("data.branches", c.data.source == "markov", c.data.branches == standard.data.branches, source);
  unread("data.tokenizer", c.data.source == "text", c.data.tokenizer == standard.data.tokenizer, source);
  unread("norm.affine", any_affine, c.norm_affine, any_norm ? str("norm '", c.norm, "'") : "a model without norms");
  for (const auto& [key, is_standard] :
       {std::pair("norm.fused", c.norm_fused), std::pair("norm.statistics", c.norm_statistics == "fp32")})
    unread(key, any_norm, is_standard, "a model without norms");
  const bool reads_eps =
      any_norm && (find_norm(c.qk_norm)->default_eps > 0 || find_norm(c.v_norm)->default_eps > 0 ||
                   std::any_of(norms.begin(), norms.end(), [](const NormDef* n) { return n->default_eps > 0; }));
  unread("norm.eps", reads_eps, c.norm_eps == automatic_eps(c),
         any_norm ? str("norm '", c.norm, "'") : "a model without norms");
  unread("model.final_norm", c.norm != "none", c.final_norm != "on", "norm 'none'");
  unread("model.qk_norm_over", c.qk_norm != "none", c.qk_norm_over == standard.qk_norm_over,
         "a model without 'model.qk_norm'");
  unread("model.qk_norm_at", c.qk_norm != "none" && c.position == "rope", c.qk_norm_at == standard.qk_norm_at,
         c.qk_norm == "none" ? "a model without 'model.qk_norm'" : "a model without RoPE");
  unread("eval.batches", c.data.validation > 0, c.eval_batches == standard.eval_batches,
         "a run without validation data");
  unread("eval.every", c.data.validation > 0, c.eval_every == standard.eval_every, "a run without validation data");
  unread("model.norm", norm_in_stream, c.norm == "none" || c.norm == standard.norm,
         str("placement '", used.front()->name, "' without a final norm"));
  unread("model.layer_norm", std::any_of(used.begin(), used.end(), [](const Placement* p) { return p->has_norms; }),
         c.layer_norm.empty(), str("placement '", used.front()->name, "'"));
  const bool final_norm = c.final_norm == "on" || (c.final_norm == "auto" && last_placement(c).final_norm);
  unread("model.norm", c.layer_norm.empty() || final_norm, c.norm == standard.norm,
         "a model with 'model.layer_norm' and no final norm");
  for (const char* option : {"unit_offset", "bias"}) {  // of gain and bias, which are not there
    const auto at = c.norm_options.find(option);
    const bool standard_value = at == c.norm_options.end() || at->second == (option == std::string("bias") ? 1 : 0);
    unread(str("norm.", option), c.norm_affine, standard_value, "a norm with norm.affine = false");
  }
  for (const Placement* p : used) {
    if (p->init_gain == nullptr || p->init_gain == gain_of(*find_init(c.init), *p)) continue;
    const std::string option(p->init_gain->option);
    unread(str("placement.", option), false,
           c.placement_options.at(option) == option_value({}, p->options, option, c.layers),
           str("init '", c.init, "'"));
  }
  unread("model.placement", c.layer_placement.empty(), c.placement == standard.placement,
         "a model with 'model.layer_placement'");
  if (c.warmup > c.steps) {
    out.push_back(str("warmup (", c.warmup, ") covers the whole run (", c.steps, " steps); the rate never reaches lr"));
  }
  return out;
}

}  // namespace normlab
