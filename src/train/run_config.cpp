#include "train/run_config.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/files.h"
#include "core/text.h"
#include "train/combinations.h"
#include "train/layer_ranges.h"

namespace normlab {

namespace {

[[noreturn]] void fail(const std::string& where, std::string_view what) { throw ConfigError(str(where, ": ", what)); }

std::string where_of(std::string_view file, Place place) { return str(file, ":", place.line, ":", place.column); }

// The value as the user wrote it, for messages.
std::string shown(const Toml& value) {
  switch (value.kind) {
    case Toml::Kind::kString: return toml_string(value.string.substr(0, 60));
    case Toml::Kind::kInteger: return std::to_string(value.integer);
    case Toml::Kind::kFloat: return toml_number(value.number);
    case Toml::Kind::kBoolean: return value.boolean ? "true" : "false";
    case Toml::Kind::kArray: return str("a list of ", value.items.size());
    default: return std::string(value.kind_name());
  }
}

// ---- reading
// -----------------------------------------------------------------------------------------------------------

// An empty table of another name would otherwise leave no trace.
bool is_section(const std::string& key) {
  RunConfig c;
  const std::vector<Field> list = fields(c);
  return key == "placement" ||
         std::any_of(list.begin(), list.end(), [&](const Field& f) { return f.key.rfind(key + ".", 0) == 0; });
}

void collect(const Toml& table, const std::string& prefix, std::string_view file, ConfigFile& out) {
  for (const TomlEntry& entry : table.entries) {
    const std::string key = prefix.empty() ? entry.key : str(prefix, ".", entry.key);
    const std::string where = where_of(file, entry.place);
    if (prefix.empty() && entry.key == "sweep") {
      if (entry.value.kind != Toml::Kind::kTable) fail(where, "'sweep' must be a table of lists");
      for (const TomlEntry& axis : entry.value.entries) {
        const std::string at = where_of(file, axis.place);
        if (axis.value.kind != Toml::Kind::kArray || axis.value.items.empty()) {
          fail(at, str("sweep key ", quote(axis.key), " must be a list of one or more values",
                       axis.value.kind == Toml::Kind::kTable ? "; put keys with dots in quotes: \"model.norm\" = [...]"
                                                             : ""));
        }
        out.sweep.push_back({axis.key, axis.value.items, at});
      }
    } else if (entry.value.kind == Toml::Kind::kTable && (!entry.value.entries.empty() || is_section(key))) {
      collect(entry.value, key, file, out);
    } else {
      out.settings.push_back({key, entry.value, where});
    }
  }
}

// Whether a --set value that is no TOML was meant as text, so that nobody needs quotes inside quotes: --set
// model.norm=layernorm,
// --set data.path=../text.txt, --set run.name=24-layers. What starts like a number, a list or a quoted string is a slip
// instead.
bool is_bare_text(const std::string& key, std::string_view value) {
  RunConfig c;
  const std::vector<Field> list = fields(c);
  const bool takes_text = std::any_of(list.begin(), list.end(), [&](const Field& f) {
    return f.key == key && (std::holds_alternative<std::string*>(f.value) || !f.choices.empty());
  });
  if (value.empty()) return takes_text;
  return std::string_view("\"'[{").find(value[0]) == std::string_view::npos &&
         (takes_text || std::string_view("+-.0123456789").find(value[0]) == std::string_view::npos);
}

// ---- applying
// ----------------------------------------------------------------------------------------------------------

std::string range(const Field& f) {
  const bool integral = std::holds_alternative<int64_t*>(f.value) || f.whole;
  const auto bound = [&](double x) {
    return integral && std::abs(x) < 9e18 ? std::to_string(static_cast<int64_t>(x)) : number(x);
  };
  if (integral && f.max >= 9e18) return str("at least ", bound(f.min));
  if (f.min == f.max) return bound(f.min);
  return str("from ", bound(f.min), " to ", bound(f.max));
}

double number_in_range(const Field& f, const Toml& value, const std::string& where, std::string_view expected) {
  if (value.kind != Toml::Kind::kInteger && value.kind != Toml::Kind::kFloat) {
    fail(where, str("'", f.key, "' must be ", expected, ", not ", shown(value)));
  }
  if (!(value.number >= f.min && value.number <= f.max)) {
    fail(where, str("'", f.key, "' must be ", range(f), ", not ", shown(value)));
  }
  return value.number + 0.0;  // -0.0 is 0
}

std::ptrdiff_t place_of_word(const Field& f, const std::string& word, const std::string& where) {
  const auto at = std::find(f.choices.begin(), f.choices.end(), word);
  if (at == f.choices.end()) {
    fail(where, str("'", f.key, "' is ", quote(word), did_you_mean(word, f.choices),
                    "; expected one of: ", join(f.choices, ", ")));
  }
  return at - f.choices.begin();
}

void assign(const Field& f, const Toml& value, const std::string& where) {
  const auto wrong = [&](std::string_view expected) {
    fail(where, str("'", f.key, "' must be ", expected, ", not ", shown(value)));
  };
  if (auto* const* to = std::get_if<int64_t*>(&f.value)) {
    if (value.kind != Toml::Kind::kInteger) wrong("an integer");
    number_in_range(f, value, where, "an integer");
    **to = value.integer;
  } else if (auto* const* flag = std::get_if<bool*>(&f.value)) {
    if (value.kind != Toml::Kind::kBoolean) wrong("true or false");
    **flag = value.boolean;
  } else if (auto* const* text = std::get_if<std::string*>(&f.value)) {
    if (value.kind != Toml::Kind::kString) wrong("a string in quotes");
    if (!f.choices.empty()) place_of_word(f, value.string, where);
    **text = value.string;
  } else if (auto* const* pair = std::get_if<std::array<double, 2>*>(&f.value)) {
    if (value.kind != Toml::Kind::kArray || value.items.size() != 2) wrong("a list of two numbers");
    for (std::size_t i = 0; i < 2; ++i)
      (**pair)[i] = number_in_range(f, value.items[i], where, "a list of two numbers");
  } else if (auto* const* list = std::get_if<std::vector<std::string>*>(&f.value)) {
    if (value.kind != Toml::Kind::kArray) wrong("a list of strings");
    (*list)->clear();
    for (const Toml& item : value.items) {
      if (item.kind != Toml::Kind::kString)
        fail(where, str("'", f.key, "' must be a list of strings; one is ", shown(item)));
      (*list)->push_back(item.string);
    }
  } else {
    double& to_number = *std::get<double*>(f.value);
    if (!f.choices.empty()) {
      if (value.kind != Toml::Kind::kString) wrong("a string in quotes");
      to_number = static_cast<double>(place_of_word(f, value.string, where));
    } else if (f.allows_auto && value.kind == Toml::Kind::kString && value.string == "auto") {
      to_number = std::numeric_limits<double>::quiet_NaN();
    } else if (f.on_off) {
      if (value.kind != Toml::Kind::kBoolean) wrong("true or false");
      to_number = value.boolean ? 1 : 0;
    } else if (f.whole && value.kind != Toml::Kind::kInteger) {
      wrong(f.allows_auto ? "an integer or \"auto\"" : "an integer");
    } else {
      to_number = number_in_range(f, value, where, f.allows_auto ? "a number or \"auto\"" : "a number");
    }
  }
}

// Of an option of norms or placements that the chosen ones do not read: who does. "" for any other key.
template <class Records>
std::string readers_of(const std::string& key, std::string_view kind, const Records& chosen, const Records& all) {
  std::vector<std::string> readers, names;
  for (const auto* record : all)
    for (const OptionSpec& o : record->options)
      if (key == str(kind == "norm" ? "norm." : "placement.", o.name)) readers.push_back(str("'", record->name, "'"));
  for (const auto* record : chosen) names.push_back(str("'", record->name, "'"));
  if (readers.empty()) return "";
  return str(kind, " ", join(names, ", "), names.size() == 1 ? " does" : " do", " not read '", key, "' (",
             join(readers, ", "), readers.size() == 1 ? " does)" : " do)");
}

std::string owner_of_option(const std::string& key, const RunConfig& c) {
  const std::string norm = readers_of(key, "norm", norms_of(c), all_norms());
  return norm.empty() ? readers_of(key, "placement", placements_of(c), all_placements()) : norm;
}

}  // namespace

ConfigFile parse_config(std::string_view text, std::string_view name, const std::vector<std::string>& sets) {
  ConfigFile out;
  collect(parse_toml(text, name), "", name, out);
  std::vector<std::string> seen;
  for (const std::string& set : sets) {
    const auto equals = set.find('=');
    const std::string key(trim(std::string_view(set).substr(0, equals)));
    if (equals == std::string::npos || key.empty()) {
      throw UsageError(str("--set needs section.key=value, not ", quote(set)));
    }
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) throw UsageError(str("--set ", key, " is given twice"));
    seen.push_back(key);
    const std::string_view value = trim(std::string_view(set).substr(equals + 1));
    Toml parsed;
    try {
      parsed = parse_toml_value(value, str("--set ", key));
    } catch (const ConfigError&) {
      if (!is_bare_text(key, value)) throw;
      parsed = Toml();
      parsed.kind = Toml::Kind::kString;
      parsed.string = std::string(value);
    }
    out.settings.push_back({key, std::move(parsed), str("--set ", key)});
  }
  return out;
}

ConfigFile read_config(const std::filesystem::path& path, const std::vector<std::string>& sets) {
  return parse_config(read_file(path), path.string(), sets);
}

double automatic_eps(const RunConfig& c) {
  std::vector<const NormDef*> norms = norms_of(c);
  norms.insert(norms.end(), {find_norm(c.qk_norm), find_norm(c.v_norm)});
  const auto reads = std::find_if(norms.begin(), norms.end(), [](const NormDef* n) { return n->default_eps > 0; });
  return reads == norms.end() ? 0 : (*reads)->default_eps;
}

RunConfig resolve(const std::vector<Setting>& settings) {
  RunConfig c;
  // Norms and placement first: they decide which options exist.
  for (const char* key : {"model.norm", "model.qk_norm", "model.v_norm", "model.placement", "model.layer_norm",
                          "model.layer_placement"}) {
    const std::vector<Field> list = fields(c);
    const Field& field = *std::find_if(list.begin(), list.end(), [&](const Field& f) { return f.key == key; });
    for (const Setting& s : settings) {
      if (s.key == key) assign(field, s.value, s.where);
    }
  }
  c.norm_options.clear();
  c.placement_options.clear();
  const RunConfig chosen = c;
  const std::vector<Field> list = fields(c);
  std::map<std::string, std::string> where;
  for (const Setting& s : settings) {
    const auto field = std::find_if(list.begin(), list.end(), [&](const Field& f) { return f.key == s.key; });
    if (field == list.end()) {
      if (const std::string foreign = owner_of_option(s.key, chosen); !foreign.empty()) fail(s.where, foreign);
      std::vector<std::string> keys;
      for (const Field& f : list) keys.push_back(f.key);
      const bool has_section = s.key.find('.') != std::string::npos;
      fail(s.where, str("unknown key ", quote(s.key), did_you_mean(s.key, keys),
                        has_section ? "" : "; keys stand in sections such as [model]"));
    }
    assign(*field, s.value, s.where);
    where[s.key] = s.where;
  }
  if (c.kv_heads == 0) c.kv_heads = c.heads;
  if (c.ffn_width == 0) c.ffn_width = 4 * c.width;
  if (std::isnan(c.norm_eps)) c.norm_eps = automatic_eps(c);
  if (std::isnan(c.attention_scale)) c.attention_scale = 1 / std::sqrt(static_cast<double>(c.width / c.heads));
  for (const Placement* placement : placements_of(c)) {
    for (const OptionSpec& spec : placement->options)
      c.placement_options[std::string(spec.name)] =
          option_value(c.placement_options, placement->options, spec.name, c.layers);
  }
  check_combinations(c, where);
  return c;
}

std::string dump(const RunConfig& config, bool annotated) {
  RunConfig c = config;
  std::string out, section;
  for (const Field& f : fields(c)) {
    const auto dot = f.key.find('.');
    const std::string of = f.key.substr(0, dot);
    if (of != section) out += str(section.empty() ? "" : "\n", "[", of, "]\n");
    section = of;
    std::string line = str(f.key.substr(dot + 1), " = ", f.text());
    if (annotated) {
      line.resize(std::max<std::size_t>(line.size(), 28), ' ');
      line += str("  # ", f.help, f.choices.empty() ? "" : str(": ", join(f.choices, " | ")));
    }
    out += line + "\n";
  }
  return out;
}

std::vector<Difference> differences(const RunConfig& a, const RunConfig& b) {
  RunConfig first = a, second = b;
  std::map<std::string, std::string> other;
  for (const Field& f : fields(second)) other[f.key] = f.text();
  std::vector<Difference> out;
  for (const Field& f : fields(first)) {
    const auto at = other.find(f.key);
    const std::string theirs = at == other.end() ? "absent" : at->second;
    if (theirs != f.text()) out.push_back({f.key, f.text(), theirs});
    if (at != other.end()) other.erase(at);
  }
  for (const auto& [key, value] : other) out.push_back({key, "absent", value});
  return out;
}

ModelConfig model_config(const RunConfig& c, int64_t vocabulary) {
  static const std::map<std::string, Ffn> ffns = {{"relu", Ffn::relu},           {"gelu", Ffn::gelu},
                                                  {"gelu_tanh", Ffn::gelu_tanh}, {"silu", Ffn::silu},
                                                  {"swiglu", Ffn::swiglu},       {"geglu", Ffn::geglu}};
  static const std::map<std::string, Position> positions = {{"learned", Position::learned},
                                                            {"sinusoidal", Position::sinusoidal},
                                                            {"rope", Position::rope},
                                                            {"none", Position::none}};
  static const std::map<std::string, FinalNorm> finals = {
      {"auto", FinalNorm::automatic}, {"on", FinalNorm::on}, {"off", FinalNorm::off}};
  ModelConfig m;
  m.layers = c.layers, m.width = c.width, m.heads = c.heads, m.kv_heads = c.kv_heads;
  m.ffn_width = c.ffn_width, m.context = c.context, m.vocabulary = vocabulary;
  m.ffn = ffns.at(c.activation), m.position = positions.at(c.position), m.final_norm = finals.at(c.final_norm);
  const auto choice = [&](const std::string& name) {
    return NormChoice{find_norm(name), c.norm_eps, c.norm_affine, c.norm_fused, c.norm_statistics == "bf16",
                      c.norm_options};
  };
  m.norm = choice(c.norm);
  if (c.qk_norm != "none") m.qk_norm = choice(c.qk_norm);
  m.qk_norm_over = c.qk_norm_over == "width" ? QkNormOver::width : QkNormOver::head;
  m.qk_norm_at = c.qk_norm_at == "after_rope" ? QkNormAt::after_rope : QkNormAt::before_rope;
  if (c.v_norm != "none") m.v_norm = choice(c.v_norm);
  m.scores = {c.attention_scale, c.attention_cap};
  m.learned_scale = c.attention_scale_learned, m.logit_cap = c.logit_cap, m.z_loss = c.z_loss;
  for (const NormDef* norm : entries_of_layers("model.layer_norm", c.layer_norm, all_norms(), c.layers))
    m.layer_norms.push_back(choice(std::string(norm->name)));
  m.layer_placements = entries_of_layers("model.layer_placement", c.layer_placement, all_placements(), c.layers);
  m.precision = c.precision == "bf16" ? Precision::bf16 : Precision::fp32;
  m.placement = find_placement(c.placement);
  m.placement_options = c.placement_options;
  m.bias = c.bias, m.tie_embeddings = c.tie_embeddings, m.dropout = c.dropout, m.init = find_init(c.init);
  return m;
}

TrainConfig train_config(const RunConfig& c) {
  TrainConfig t;
  t.batch = c.batch, t.accumulate = c.accumulate, t.slots = c.slots, t.recompute = c.recompute, t.clip = c.clip;
  t.optimizer = find_optimizer(c.optimizer);
  t.optimizer_config = {c.betas[0], c.betas[1], c.adam_eps, c.momentum, c.weight_decay};
  t.schedule = find_schedule(c.schedule);
  t.schedule_config = {c.lr, c.min_lr, c.warmup, c.steps};
  return t;
}

DataConfig data_config(const RunConfig& c) {
  DataConfig d = c.data;
  d.seed = static_cast<uint64_t>(c.data_seed);
  return d;
}

}  // namespace normlab
