// The decoder-only Transformer: embeddings, N layers of causal attention and feed-forward sub-layers joined by a
// placement, head. The model is a function that records a graph; there are no layer objects.
#pragma once

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
  const Placement* placement = nullptr;
  Options placement_options;
  FinalNorm final_norm = FinalNorm::automatic;
  bool bias = true;
  bool tie_embeddings = false;
  double dropout = 0;
  const InitDef* init = nullptr;
  Precision precision = Precision::fp32;
};

// Where to look at one residual sub-layer.
struct SublayerVars {
  std::string name;  // "attention" | "ffn"
  int64_t layer = 0;
  Var stream_in, branch_out, stream_out;  // (B, T, C); the branch before the placement weighs, norms or adds it
  Var q, k;                               // (B, T, H dh) as attention multiplies them; absent in ffn
};

struct Decoder {
  Var logits;  // (B, T, V)
  Var loss;    // (1), sum over valid targets
  std::vector<SublayerVars> sublayers;
};

// Records the decoder into `graph` (B and T are the graph's) and sets its loss.
// Weight names and shapes follow PyTorch: see README, "Weights".
Decoder build_decoder(Graph& graph, const ModelConfig& config);

// Sentences a user should read once: a norm that leaks future tokens, an option without effect.
std::vector<std::string> model_warnings(const ModelConfig& config);

// Whether a norm stands before the head: the config's word, or the placement's own rule.
bool has_final_norm(const ModelConfig& config);

// True where the norm needs all sequences of a batch in one workspace.
bool needs_whole_batch(const ModelConfig& config);

}  // namespace normlab
