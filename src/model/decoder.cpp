#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "normlab/model.h"

namespace normlab {

namespace {

// Records one decoder; holds what all of its parts need.
class Builder {
 public:
  Builder(Graph& graph, const ModelConfig& config)
      : graph_(graph), config_(config), wire_(graph, config.placement_options, config.layers) {}

  Decoder build() {
    Var x = embed();
    Stream s = start(0, x);
    for (int64_t layer = 0; layer < config_.layers; ++layer) {
      if (layer > 0 && &config_.placement_of(layer) != &config_.placement_of(layer - 1)) {
        const Graph::Scope scope(graph_, str("layers.", layer, ".joint"));
        s = start(layer, finish(layer, s));
      }
      if (layer == config_.removed_layer) {
        wire_.enter(config_.placement_of(layer), config_.norm_of(layer), layer);  // what comes after it stays
        continue;
      }
      const Graph::Scope scope(graph_, str("layers.", layer));
      const Graph::Segment segment(graph_);
      s = sublayer("attention", layer, 2 * layer, s, [this](Var in) { return attend(in); });
      s = sublayer("ffn", layer, 2 * layer + 1, s, [this](Var in) { return feed_forward(in); });
    }
    x = finish(config_.layers, s);
    if (has_final_norm(config_)) x = apply_norm(graph_, config_.norm, "final_norm", x);
    Decoder decoder;
    decoder.sublayers = std::move(sublayers_);
    decoder.logits = cap(head(x));
    objective(decoder);
    return decoder;
  }

 private:
  // The placement of the layers from `layer` on begins with the one stream x; that of the layers before it ends so.
  Stream start(int64_t layer, Var x) {
    wire_.enter(config_.placement_of(layer), config_.norm_of(layer), layer);
    return wire_.placement().start != nullptr ? wire_.placement().start(wire_, x) : Stream{x, {}};
  }
  Var finish(int64_t layer, Stream s) {
    wire_.layer = layer;
    return wire_.placement().finish != nullptr ? wire_.placement().finish(wire_, s) : s.x;
  }

  Var matrix(std::string_view name, Role role, int64_t out, int64_t in) {
    const MatrixInfo m = info(role, out, in);
    Draw draw = config_.init->matrix(m);
    draw.std *= gain(m);
    ParamSpec spec;
    spec.name = graph_.path(name);
    spec.shape = {out, in};
    spec.role = role;
    spec.fill = draw.fill, spec.std = draw.std;
    return graph_.param(spec);
  }

  MatrixInfo info(Role role, int64_t out, int64_t in) const {
    const bool in_stack = role != Role::token_embedding && role != Role::position_embedding && role != Role::head;
    return {role, in, out, config_.width, config_.layers, in_stack ? wire_.layer : -1};
  }

  // Of the init, on a standard deviation. Where the layer's placement is the one it comes from, its option sets it.
  double gain(const MatrixInfo& m) const {
    const Placement& p = config_.placement_of(m.role == Role::head ? config_.layers : m.layer);
    const DepthGain* gain = gain_of(*config_.init, p);
    if (gain == nullptr || !gain->scales(m)) return 1;
    return gain == p.init_gain ? option_value(config_.placement_options, p.options, gain->option, m.layers)
                               : gain->factor(m.layers);
  }

  // x W^T (+ b), parameters `name`.weight and `name`.bias.
  Var project(std::string_view name, Role role, Var x, int64_t out) {
    const Graph::Scope scope(graph_, name);
    const Var weight = matrix("weight", role, out, x.shape().cols());
    Var bias;
    if (config_.bias && role != Role::head) {
      ParamSpec spec;
      spec.name = graph_.path("bias");
      spec.shape = {out};
      if (config_.init->bias != nullptr) {
        const Draw draw = config_.init->bias(info(role, out, x.shape().cols()));
        spec.fill = draw.fill, spec.std = draw.std;
      }
      bias = graph_.param(spec);
    }
    return linear(x, weight, bias);
  }

  Var embed() {
    Var x;
    {
      const Graph::Scope scope(graph_, "embedding.token");
      x = embedding(graph_, matrix("weight", Role::token_embedding, config_.vocabulary, config_.width));
    }
    if (config_.position == Position::learned) {
      const Graph::Scope scope(graph_, "embedding.position");
      x = add_positions(x, matrix("weight", Role::position_embedding, config_.context, config_.width));
    } else if (config_.position == Position::sinusoidal) {
      x = add_sinusoids(x);
    }
    return dropout(x, config_.dropout);
  }

  Stream sublayer(std::string_view name, int64_t layer, int64_t index, Stream s, const Branch& branch) {
    const Graph::Scope scope(graph_, name);
    wire_.enter(config_.placement_of(layer), config_.norm_of(layer), layer);
    wire_.sublayer = index;
    int calls = 0;
    sublayers_.push_back({std::string(name), layer, s.x, {}, {}, {}, {}});
    Branch counted = [&](Var x) {
      ++calls;
      // residual dropout: Vaswani et al. 2017, section 5.4
      return sublayers_.back().branch_out = dropout(branch(x), config_.dropout);
    };
    s = wire_.placement().sublayer(wire_, s, counted);
    if (calls != 1)
      graph_.fail(str("placement '", wire_.placement().name, "' calls the branch ", calls, " times, not once"));
    sublayers_.back().stream_out = s.x;
    return s;
  }

  // x through a norm per head whose weights the heads share.
  Var head_norm(const NormChoice& norm, std::string_view name, Var x, int64_t heads) {
    return norm.def == nullptr ? x : graph_.merge(apply_norm(graph_, norm, name, graph_.split(x, heads)));
  }
  Var qk_norm(QkNormAt at, std::string_view name, Var x, int64_t heads) {
    if (at != config_.qk_norm_at) return x;
    if (config_.qk_norm_over == QkNormOver::width) return apply_norm(graph_, config_.qk_norm, name, x);
    return head_norm(config_.qk_norm, name, x, heads);
  }

  // Scores q k under a learned scale g are (g q) k.
  Var scaled(Var q, Scores& scores) {
    if (!config_.learned_scale) return q;
    const int64_t head_width = config_.width / config_.heads;
    ParamSpec spec;
    spec.name = graph_.path("scale");
    spec.shape = {1};
    spec.mean = scores.scale.value_or(1 / std::sqrt(static_cast<double>(head_width)));
    scores.scale = 1;
    return scale_channels(q, graph_.param(spec));
  }

  Var inside(Inside at, Var x, int64_t heads) {
    return wire_.placement().inside != nullptr ? wire_.placement().inside(wire_, at, x, heads) : x;
  }

  Var attend(Var x) {
    const int64_t heads = config_.heads, kv_heads = config_.kv_heads, head_width = config_.width / heads;
    Var q = project("q", Role::query, x, config_.width);
    Var k = project("k", Role::key, x, kv_heads * head_width);
    Var v = project("v", Role::value, x, kv_heads * head_width);
    v = inside(Inside::value, head_norm(config_.v_norm, "v_norm", v, kv_heads), kv_heads);
    q = qk_norm(QkNormAt::before_rope, "q_norm", q, heads);
    k = qk_norm(QkNormAt::before_rope, "k_norm", k, kv_heads);
    q = inside(Inside::query, q, heads);
    k = inside(Inside::key, k, kv_heads);
    if (config_.position == Position::rope) {
      q = rope(q, heads);
      k = rope(k, kv_heads);
    }
    q = qk_norm(QkNormAt::after_rope, "q_norm", q, heads);
    k = qk_norm(QkNormAt::after_rope, "k_norm", k, kv_heads);
    Scores scores = config_.scores;
    q = scaled(q, scores);
    sublayers_.back().q = q, sublayers_.back().k = k, sublayers_.back().scores = scores;
    const Var mixed = inside(Inside::mixed, attention(q, k, v, heads, kv_heads, scores), heads);
    return project("out", Role::attention_out, mixed, config_.width);
  }

  Var feed_forward(Var x) {
    const bool gated = config_.ffn == Ffn::swiglu || config_.ffn == Ffn::geglu;
    Var hidden = project("up", Role::ffn_up, x, config_.ffn_width);
    if (gated) {
      // Shazeer 2020: f(x W_gate) * (x W_up)
      const Var gate = project("gate", Role::ffn_gate, x, config_.ffn_width);
      hidden = multiply(activation(gate, config_.ffn == Ffn::swiglu ? Activation::silu : Activation::gelu), hidden);
    } else {
      hidden = activation(hidden, plain_activation());
    }
    return project("down", Role::ffn_down, inside(Inside::hidden, hidden, 1), config_.width);
  }

  Activation plain_activation() const {
    switch (config_.ffn) {
      case Ffn::relu: return Activation::relu;
      case Ffn::gelu_tanh: return Activation::gelu_tanh;
      case Ffn::silu: return Activation::silu;
      default: return Activation::gelu;
    }
  }

  Var head(Var x) {
    if (config_.tie_embeddings) return linear(x, graph_.shared_param("embedding.token.weight"), {});
    return project("head", Role::head, x, config_.vocabulary);
  }

  // c tanh(z / c), Gemma 2.
  Var cap(Var logits) {
    const double c = config_.logit_cap;
    if (c == 0) return logits;
    const Graph::KeepFp32 inside(graph_);
    const Var capped = affine(activation(affine(logits, 1 / c, 0), Activation::tanh), c, 0);
    graph_.round(capped);
    return capped;
  }

  void objective(Decoder& decoder) {
    const Graph::KeepFp32 losses(graph_);
    decoder.loss = decoder.objective = cross_entropy(decoder.logits);
    if (config_.z_loss > 0) decoder.objective = add(decoder.loss, z_loss(decoder.logits), 1, config_.z_loss);
    graph_.keep(decoder.loss);
    graph_.set_loss(decoder.objective);
  }

  Graph& graph_;
  const ModelConfig& config_;
  Wire wire_;
  std::vector<SublayerVars> sublayers_;
};

}  // namespace

Decoder build_decoder(Graph& graph, const ModelConfig& config) {
  if (config.width % config.heads != 0)
    graph.fail(str("width ", config.width, " does not divide into ", config.heads, " heads"));
  if (config.heads % config.kv_heads != 0) {
    graph.fail(str(config.heads, " heads do not divide into ", config.kv_heads, " kv heads"));
  }
  return Builder(graph, config).build();
}

std::vector<const NormDef*> norms_of(const ModelConfig& config) {
  std::vector<const NormDef*> out;
  const auto add = [&](const NormDef* norm) {
    if (norm != nullptr && std::find(out.begin(), out.end(), norm) == out.end()) out.push_back(norm);
  };
  for (int64_t layer = 0; layer < config.layers; ++layer)
    if (config.placement_of(layer).has_norms) add(config.norm_of(layer).def);
  if (has_final_norm(config)) add(config.norm.def);
  return out;
}

std::vector<const Placement*> placements_of(const ModelConfig& config) {
  std::vector<const Placement*> out;
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const Placement* placement = &config.placement_of(layer);
    if (std::find(out.begin(), out.end(), placement) == out.end()) out.push_back(placement);
  }
  return out;
}

namespace {

// A scale of attention that does not suit queries and keys of the length that their norm gives them.
std::string warning_of_scale(const ModelConfig& c) {
  const int64_t head_width = c.width / c.heads;
  const NormDef* norm = c.qk_norm.def;
  if (norm == nullptr || !norm->scale_invariant || !c.scores.scale) return "";
  const double scale = *c.scores.scale, context = static_cast<double>(c.context);
  if (norm->unit_length && scale <= 1) {
    return str("qk_norm '", norm->name, "' gives vectors of length 1, so with attention_scale ", fixed(scale, 4),
               " no score exceeds it and attention is nearly uniform; Henry et al. 2020 start a learned scale at "
               "log2(T^2 - T), ",
               fixed(std::log2(std::max(2.0, context * context - context)), 2), " for this context");
  }
  if (!norm->unit_length && scale >= 1 && head_width > 1) {
    return str("qk_norm '", norm->name, "' gives vectors of length sqrt(", head_width, "), so with attention_scale ",
               scale, " scores reach ", number(scale * static_cast<double>(head_width)),
               " and attention saturates; auto is 1 / sqrt(", head_width, ")");
  }
  return "";
}

}  // namespace

std::vector<std::string> model_warnings(const ModelConfig& config) {
  std::vector<std::string> warnings;
  for (const NormDef* norm : norms_of(config)) {
    if (norm->reach == Reach::token) continue;
    warnings.push_back(str(
        "norm '", norm->name, "' looks across positions: in this causal model future tokens leak into the prediction",
        norm->reach == Reach::batch ? " while training, so training loss is too good and evaluation differs"
                                    : ", so its loss is too good"));
  }
  for (const Placement* placement : placements_of(config)) {
    if (placement->init_gain == nullptr || placement->init_gain == gain_of(*config.init, *placement)) continue;
    warnings.push_back(str("init '", config.init->name, "' leaves out the gains of placement '", placement->name, "' (",
                           placement->init_gain->rule, "); init = \"auto\" applies them"));
  }
  const int64_t head_width = config.width / config.heads;
  const auto caution = [&](const NormChoice& choice, std::string_view role, int64_t width) {
    if (choice.def == nullptr || choice.def->caution == nullptr) return;
    if (const std::string text = choice.def->caution(choice.options, width); !text.empty())
      warnings.push_back(str(role, " '", choice.def->name, "' over ", width, " channels: ", text));
  };
  for (const NormDef* norm : norms_of(config)) {
    NormChoice choice = config.norm;
    choice.def = norm;
    caution(choice, "norm", config.width);
  }
  caution(config.qk_norm, "qk_norm", config.qk_norm_over == QkNormOver::width ? config.width : head_width);
  caution(config.v_norm, "v_norm", head_width);
  if (std::string text = warning_of_scale(config); !text.empty()) warnings.push_back(std::move(text));
  return warnings;
}

bool has_final_norm(const ModelConfig& config) {
  if (config.final_norm != FinalNorm::automatic) return config.final_norm == FinalNorm::on;
  return config.placement_of(config.layers).final_norm;
}

bool needs_whole_batch(const ModelConfig& config) {
  const auto norms = norms_of(config);
  return std::any_of(norms.begin(), norms.end(), [](const NormDef* n) { return n->reach == Reach::batch; });
}

}  // namespace normlab
