// Gradient check cases from the registries: every norm, every placement, every option of a model.
#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "lab/gradcheck.h"
#include "normlab/model.h"

namespace normlab {

namespace {

using Ignored = GradcheckCase::Ignored;

// What a norm is tried on: the elements of (B, T, width), from a standard normal draw and the norm's eps.
struct Edge {
  std::string_view name;
  int64_t width = 8;
  std::function<double(double z, double eps)> value = [](double z, double) { return 0.3 + 1.5 * z; };
  Graph::Sizes sizes = {2, 4};
  Ignored ignored = Ignored::none;
  bool training = true;
};

// All elements of a kind alike, so that the rows of tokens, sequences and batches are all constant, zero or small.
const std::vector<Edge>& edges() {
  static const std::vector<Edge> all = {
      {.name = "plain"},
      {.name = "wide", .width = 36},
      {.name = "constant", .value = [](double, double) { return 2.0; }},
      {.name = "zero", .value = [](double, double) { return 0.0; }},
      {.name = "offset 1e4", .value = [](double z, double) { return 1e4 + z; }},
      {.name = "small", .value = [](double z, double eps) { return (eps > 0 ? std::sqrt(eps) : 1e-3) * z; }},
      {.name = "large", .value = [](double z, double) { return 1e3 * z; }},
      {.name = "width 1", .width = 1},
      {.name = "one position", .sizes = {2, 1}},
      {.name = "some ignored", .ignored = Ignored::some},
      {.name = "a sequence ignored", .ignored = Ignored::sequence},
      {.name = "evaluation", .training = false},
  };
  return all;
}

GradcheckCase norm_case(const NormDef& def, const NormChoice& choice, const Edge& edge, std::string_view what,
                        bool heads = false) {
  GradcheckCase c;
  c.section = "norm";
  c.name = str(def.name, ": ", what, choice.fused ? ", fused" : "");
  c.norm = def.name;
  c.sizes = edge.sizes;
  c.training = edge.training;
  c.ignored = edge.ignored;
  if (std::find(def.rough.begin(), def.rough.end(), edge.name) != def.rough.end())
    c.rough = "declared to have no derivative here";
  if (!def.detaching.empty() && option_value(choice.options, def.options, def.detaching) != 0)
    c.rough = "leaves a part of the derivative out by design";
  c.record = [choice, edge, heads](CaseInputs& in) {
    Graph& g = in.graph;
    const Var x =
        in.tensor("x", {g.batch(), g.time(), edge.width}, [=](double z) { return edge.value(z, choice.eps); });
    return apply_norm(g, choice, "norm", heads ? g.split(x, 2) : x);
  };
  return c;
}

GradcheckCase model_case(std::string name, const ModelConfig& config) {
  GradcheckCase c;
  c.section = "model";
  c.name = std::move(name);
  c.norm = config.norm.def->name;
  c.placement = config.placement->name;
  c.sizes = {2, config.context};
  c.vocabulary = config.vocabulary;
  c.every_element = false;
  c.ignored = Ignored::some;
  c.record = [config](CaseInputs& in) { return build_decoder(in.graph, config).objective; };
  return c;
}

// Allowed values of the option other than its default: every other word or switch, one number.
std::vector<double> other_values(const OptionSpec& option) {
  std::vector<double> others;
  if (option.kind == OptionSpec::Kind::boolean || option.kind == OptionSpec::Kind::word) {
    for (double value = option.min; value <= option.max; ++value) {
      if (value != option.standard) others.push_back(value);
    }
    return others;
  }
  const double value = std::clamp(option.kind == OptionSpec::Kind::integer ? 2.0 : 1.5, option.min, option.max);
  return {value == option.standard ? std::clamp(1.0, option.min, option.max) : value};
}

// Norms and placements are crossed; what is independent of both is tried on one model.
std::vector<GradcheckCase> option_cases() {
  std::vector<GradcheckCase> cases;
  const ModelConfig base = small_model(*all_norms().front(), *all_placements().front());
  const auto vary = [&](const std::string& name, const std::function<void(ModelConfig&)>& change) -> GradcheckCase& {
    ModelConfig config = base;
    change(config);
    cases.push_back(model_case(name, config));
    return cases.back();
  };
  const std::pair<const char*, Ffn> ffns[] = {{"relu", Ffn::relu},           {"gelu", Ffn::gelu},
                                              {"gelu_tanh", Ffn::gelu_tanh}, {"silu", Ffn::silu},
                                              {"swiglu", Ffn::swiglu},       {"geglu", Ffn::geglu}};
  for (const auto& [name, ffn] : ffns) vary(str("activation ", name), [&, f = ffn](ModelConfig& m) { m.ffn = f; });
  const std::pair<const char*, Position> positions[] = {{"learned", Position::learned},
                                                        {"sinusoidal", Position::sinusoidal},
                                                        {"rope", Position::rope},
                                                        {"none", Position::none}};
  for (const auto& [name, position] : positions)
    vary(str("position ", name), [&, p = position](ModelConfig& m) { m.position = p; });
  for (const InitDef* init : all_inits()) vary(str("init ", init->name), [&](ModelConfig& m) { m.init = init; });
  for (const NormDef* def : all_norms()) {
    if (def->reach == Reach::token)
      vary(str("qk_norm ", def->name), [&](ModelConfig& m) { m.qk_norm = norm_choice(*def, 2); });
  }
  const auto qk_norm = [](ModelConfig& m, const char* norm) {
    m.kv_heads = 1;
    m.qk_norm = norm_choice(*find_norm(norm), 2);
  };
  vary("qk_norm over the width", [&](ModelConfig& m) {
    qk_norm(m, "layernorm");
    m.qk_norm_over = QkNormOver::width;
  });
  vary("qk_norm after RoPE", [&](ModelConfig& m) {
    qk_norm(m, "layernorm");
    m.qk_norm_at = QkNormAt::after_rope;
  });
  vary("v_norm, kv_heads 1", [](ModelConfig& m) {
    m.kv_heads = 1;
    m.v_norm = norm_choice(*find_norm("rmsnorm"), 2);
  });
  vary("l2norm, learned scale", [&](ModelConfig& m) {
    qk_norm(m, "l2norm");
    m.scores.scale = 5;
    m.learned_scale = true;
  });
  vary("learned scale from auto, capped", [](ModelConfig& m) {
    m.scores.cap = 0.5;
    m.learned_scale = true;
  });
  vary("attention capped", [](ModelConfig& m) { m.scores = {2, 0.5}; });
  vary("logits capped", [](ModelConfig& m) { m.logit_cap = 0.8; });
  vary("z_loss", [](ModelConfig& m) { m.z_loss = 0.3; });
  vary("z_loss of capped logits, a sequence ignored", [](ModelConfig& m) {
    m.logit_cap = 0.8;
    m.z_loss = 0.3;
  }).ignored = Ignored::sequence;
  vary("bias off", [](ModelConfig& m) { m.bias = false; });
  vary("tie_embeddings", [](ModelConfig& m) { m.tie_embeddings = true; });
  vary("kv_heads 1", [](ModelConfig& m) { m.kv_heads = 1; });
  vary("dropout", [](ModelConfig& m) { m.dropout = 0.2; });
  vary("dropout, evaluation", [](ModelConfig& m) { m.dropout = 0.2; }).training = false;
  vary("final_norm on", [](ModelConfig& m) { m.final_norm = FinalNorm::on; });
  vary("final_norm off", [](ModelConfig& m) { m.final_norm = FinalNorm::off; });
  vary("norm without gain and bias", [](ModelConfig& m) { m.norm.affine = false; });
  vary("norm by its definition", [](ModelConfig& m) { m.norm.fused = false; });
  vary("all targets", [](ModelConfig&) {}).ignored = Ignored::none;
  vary("a sequence ignored", [](ModelConfig&) {}).ignored = Ignored::sequence;
  return cases;
}

}  // namespace

NormChoice norm_choice(const NormDef& def, double integer) {
  NormChoice choice;
  choice.def = &def;
  choice.eps = def.default_eps;
  for (const OptionSpec& option : def.options) {
    if (option.kind == OptionSpec::Kind::integer)
      choice.options[std::string(option.name)] = std::clamp(integer, option.min, option.max);
    if (option.name == def.detaching) choice.options[std::string(option.name)] = 0;
  }
  return choice;
}

ModelConfig small_model(const NormDef& norm, const Placement& placement) {
  ModelConfig m;
  m.layers = 2, m.width = 16, m.heads = 2, m.kv_heads = 2, m.ffn_width = 24, m.context = 6, m.vocabulary = 7;
  m.position = Position::rope;
  m.norm = norm_choice(norm, 2);
  m.placement = &placement;
  // Branches that start at 0 would hide themselves.
  for (const OptionSpec& option : placement.options) {
    const bool starts_at_zero = option.kind == OptionSpec::Kind::number && option.standard == 0;
    if (starts_at_zero) m.placement_options[std::string(option.name)] = 0.5;
  }
  m.init = find_init("auto");
  return m;
}

std::vector<GradcheckCase> norm_cases(const NormDef& def) {
  for (const std::string_view rough : def.rough) {
    std::vector<std::string> names;
    for (const Edge& edge : edges()) names.emplace_back(edge.name);
    if (std::find(names.begin(), names.end(), rough) == names.end()) {
      throw RecordError(
          str("norm ", quote(def.name), ": rough names ", quote(rough), ", which is none of: ", join(names, ", ")));
    }
  }
  std::vector<GradcheckCase> cases;
  const Edge& plain = edges().front();
  for (const bool fused : {false, true}) {
    if (fused && def.fused == nullptr) continue;
    NormChoice choice = norm_choice(def, 2);
    choice.fused = fused;
    for (const Edge& edge : edges()) {
      NormChoice fitting = edge.width == 1 ? norm_choice(def, 1) : choice;
      fitting.fused = fused;
      cases.push_back(norm_case(def, fitting, edge, edge.name));
    }
    const auto vary = [&](std::string_view what, const std::function<void(NormChoice&)>& change) {
      NormChoice changed = choice;
      change(changed);
      cases.push_back(norm_case(def, changed, plain, what));
    };
    vary("without gain and bias", [](NormChoice& c) { c.affine = false; });
    vary("default options", [](NormChoice& c) { c.options.clear(); });
    vary("eps 0.5", [](NormChoice& c) { c.eps = 0.5; });
    for (const OptionSpec& option : def.options) {
      for (const double value : other_values(option)) {
        const bool word = option.kind == OptionSpec::Kind::word;
        vary(word ? str(option.name, " = ", option.words[static_cast<std::size_t>(value)])
                  : str(option.name, " = ", value),
             [&](NormChoice& c) { c.options[std::string(option.name)] = value; });
        cases.back().ignored = Ignored::some;
      }
    }
    if (def.reach == Reach::token) cases.push_back(norm_case(def, choice, plain, "two heads", true));
  }
  return cases;
}

std::vector<GradcheckCase> model_cases() {
  std::vector<GradcheckCase> cases = option_cases();
  for (const Placement* placement : all_placements()) {
    for (const NormDef* norm : all_norms()) {
      const ModelConfig config = small_model(*norm, *placement);
      cases.push_back(model_case(str(placement->name, " x ", norm->name), config));
      if (norm->reach != Reach::batch) continue;
      cases.push_back(model_case(str(placement->name, " x ", norm->name, ", evaluation"), config));
      cases.back().training = false;
    }
    for (const OptionSpec& option : placement->options) {
      for (const double value : other_values(option)) {
        ModelConfig config = small_model(*all_norms().front(), *placement);
        config.placement_options[std::string(option.name)] = value;
        cases.push_back(model_case(str(placement->name, ", ", option.name, " = ", value), config));
      }
    }
  }
  return cases;
}

std::vector<GradcheckCase> gradcheck_cases() {
  std::vector<GradcheckCase> cases = op_cases();
  const auto append = [&](const std::vector<GradcheckCase>& more) {
    cases.insert(cases.end(), more.begin(), more.end());
  };
  for (const NormDef* def : all_norms()) append(norm_cases(*def));
  append(model_cases());
  return cases;
}

}  // namespace normlab
