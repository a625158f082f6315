// The decoder-only Transformer: embeddings, N layers of causal attention and feed-forward sub-layers joined by a
// placement, head. The model is a function that records a graph; there are no layer objects.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "normlab/graph.h"
#include "normlab/init.h"
#include "normlab/norm.h"
#include "normlab/placement.h"

namespace normlab {

enum class Ffn { relu, gelu, gelu_tanh, silu, swiglu, geglu };
enum class Position { learned, sinusoidal, rope, none };
enum class FinalNorm { automatic, on, off };
enum class QkNormOver { head, width };
enum class QkNormAt { before_rope, after_rope };

struct ModelConfig {
  int64_t layers = 24;
  int64_t width = 64;
  int64_t heads = 4;
  int64_t kv_heads = 4;
  int64_t ffn_width = 256;
  int64_t context = 64;
  int64_t vocabulary = 0;
  Ffn ffn = Ffn::gelu;
  Position position = Position::learned;
  NormChoice norm;
  NormChoice qk_norm;  // def = nullptr: none
  // One norm per head, its weights shared by the heads, or one over all channels of the queries, of the keys (OLMo 2).
  QkNormOver qk_norm_over = QkNormOver::head;
  QkNormAt qk_norm_at = QkNormAt::before_rope;
  NormChoice v_norm;           // of each head's values; def = nullptr: none
  Scores scores;               // of attention
  bool learned_scale = false;  // one number per layer in the place of scores.scale, where it starts
  double logit_cap = 0;        // c: logits z become c tanh(z / c); 0: none
  double z_loss = 0;           // weight of (log Z)^2 in the objective
  const Placement* placement = nullptr;
  Options placement_options;
  // Of layers 0 to N - 1 where they differ; empty: norm and placement in all. The final norm is `norm`.
  std::vector<NormChoice> layer_norms;
  std::vector<const Placement*> layer_placements;
  FinalNorm final_norm = FinalNorm::automatic;
  bool bias = true;
  bool tie_embeddings = false;
  double dropout = 0;
  const InitDef* init = nullptr;
  int64_t removed_layer = -1;  // passed over, and its weights with it: to see what the others do without it
  Precision precision = Precision::fp32;

  // layer = -1 (embeddings) counts as the first layer, N (head) as the last.
  const NormChoice& norm_of(int64_t layer) const { return of(layer_norms, layer, norm); }
  const Placement& placement_of(int64_t layer) const { return *of(layer_placements, layer, placement); }

 private:
  template <class T>
  static const T& of(const std::vector<T>& by_layer, int64_t layer, const T& everywhere) {
    if (by_layer.empty()) return everywhere;
    return by_layer[static_cast<std::size_t>(std::clamp<int64_t>(layer, 0, static_cast<int64_t>(by_layer.size()) - 1))];
  }
};

// Where to look at one residual sub-layer.
struct SublayerVars {
  std::string name;  // "attention" | "ffn"
  int64_t layer = 0;
  Var stream_in, branch_out, stream_out;  // (B, T, C); the branch before the placement weighs, norms or adds it
  Var q, k;                               // (B, T, H dh) as attention multiplies them; absent in ffn
  Scores scores = {};                     // what attention makes of them
};

struct Decoder {
  Var logits;     // (B, T, V)
  Var loss;       // (1), cross entropy, sum over valid targets
  Var objective;  // (1), what training minimises: the loss, plus the z loss where there is one
  std::vector<SublayerVars> sublayers;
};

// Records the decoder into `graph` (B and T are the graph's) and sets its loss.
// Weight names and shapes follow PyTorch: see README, "Weights".
Decoder build_decoder(Graph& graph, const ModelConfig& config);

// The norms of the stream, the final one too, and the placements, each once.
std::vector<const NormDef*> norms_of(const ModelConfig& config);
std::vector<const Placement*> placements_of(const ModelConfig& config);

// Sentences a user should read once: a norm that leaks future tokens, an option without effect.
std::vector<std::string> model_warnings(const ModelConfig& config);

// Whether a norm stands before the head: the config's word, or the placement's own rule.
bool has_final_norm(const ModelConfig& config);

// True where the norm needs all sequences of a batch in one workspace.
bool needs_whole_batch(const ModelConfig& config);

}  // namespace normlab
