#include "train/combinations.h"

#include <algorithm>

#include "core/text.h"

namespace normlab {

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
  const NormDef& norm = *find_norm(c.norm);
  if (norm.reach == Reach::batch && c.slots > 1) {
    complain("train.slots", str("norm '", c.norm, "' needs the whole batch in one slot; leave 'train.slots' at 0"));
  }
  const auto require_divisors = [&](const NormDef& def, int64_t width, std::string_view of) {
    for (const OptionSpec& spec : def.options) {
      const auto value = static_cast<int64_t>(c.norm_options.at(std::string(spec.name)));
      if (spec.divides_width && width % value != 0)
        complain(str("norm.", spec.name), str("'norm.", spec.name, "' (", value, ") must divide ", of));
    }
  };
  require_divisors(norm, c.width, str("'model.width' (", c.width, ")"));
  require_divisors(*find_norm(c.qk_norm), c.width / c.heads,
                   str("the width of a head (", c.width / c.heads, "), as 'model.qk_norm' is '", c.qk_norm, "'"));
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
  if (c.name.empty() || c.name == "." || c.name == ".." || c.name.size() > 200 ||
      std::any_of(c.name.begin(), c.name.end(),
                  [](char ch) { return ch == '/' || static_cast<unsigned char>(ch) < 0x20 || ch == 0x7f; })) {
    complain("run.name", str("'run.name' must be a plain directory name of up to 200 bytes, not ", quote(c.name)));
  }
}

std::vector<std::string> config_warnings(const RunConfig& c) {
  std::vector<std::string> out;
  const RunConfig standard;
  const auto unread = [&](std::string_view key, bool is_read, bool is_standard, std::string_view reader) {
    if (!is_read && !is_standard) out.push_back(str("'", key, "' has no effect: ", reader, " does not read it"));
  };
  const std::string source = str("data source '", c.data.source, "'");
  const bool generated = c.data.source != "text" && c.data.source != "tokens",
             any_norm = c.norm != "none" || c.qk_norm != "none",
             any_affine = find_norm(c.norm)->has_affine || find_norm(c.qk_norm)->has_affine;
  unread("data.tokens", generated, c.data.tokens == standard.data.tokens, source);
  unread("data.seed", generated, c.data_seed == standard.data_seed, source);
  unread("data.states", c.data.source == "markov", c.data.states == standard.data.states, source);
  unread("data.branches", c.data.source == "markov", c.data.branches == standard.data.branches, source);
  unread("data.tokenizer", c.data.source == "text", c.data.tokenizer == standard.data.tokenizer, source);
  unread("norm.affine", any_affine, c.norm_affine, str("norm '", c.norm, "'"));
  unread("norm.fused", any_norm, c.norm_fused, "norm 'none'");
  unread("eval.every", c.data.validation > 0, c.eval_every == standard.eval_every, "a run without validation data");
  unread("model.norm", c.placement != "none" || c.final_norm == "on", c.norm == "none",
         "placement 'none' without a final norm");
  if (c.warmup >= c.steps) {
    out.push_back(str("warmup (", c.warmup, ") covers the whole run (", c.steps, " steps); the rate never reaches lr"));
  }
  return out;
}

}  // namespace normlab
