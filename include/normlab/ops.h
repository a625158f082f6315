// Every operation as one function. Shapes: B sequences, T positions, C channels (width), H heads, V vocabulary.
// Absent Vars (no bias, no gain) are allowed where said. All throw ShapeError, with the layer's path, where shapes do
// not fit.
#pragma once

#include <optional>

#include "normlab/graph.h"

namespace normlab {

// ---- matrices and tables (ops/linear.cpp, ops/embedding.cpp) ----
Var linear(Var x, Var weight, Var bias);  // (B, T, in) (out, in) (out)? -> (B, T, out):  x W^T + b
Var embedding(Graph& graph, Var table);   // (V, C) -> (B, T, C): row of each token
Var add_positions(Var x, Var table);      // (B, T, C) + (T, C): row t added at position t (learned positions)
Var add_sinusoids(Var x);                 // the fixed table of Vaswani et al. 2017, section 3.5

// ---- element by element (ops/elementwise.cpp) ----
Var add(Var x, Var y, double a = 1, double b = 1);  // a x + b y, same shapes
Var multiply(Var x, Var y);                         // x y, same shapes
Var affine(Var x, double factor, double offset);    // factor x + offset
enum class Activation { relu, gelu, gelu_tanh, silu, tanh, erf };
Var activation(Var x, Activation f);
Var at_least(Var x, double least);  // max(x, least)
Var detach(Var x);                  // x, but no gradient passes
Var dropout(Var x, double rate);    // training: kept with probability 1 - rate and divided by it; else x

// ---- channels (ops/channels.cpp): vectors along the last dimension, or one number, shape (1), for all of it; an
// absent one gives x itself ----
Var scale_channels(Var x, Var gain);  // (.., C) (C) -> (.., C)
Var shift_channels(Var x, Var bias);
// (.., C) (G) -> (.., C): the channels in G equal parts side by side, part g times factors[g]: one factor for all
// (G = 1), for each head (G = H), for each channel (G = C).  (ops/scale_parts.cpp)
Var scale_parts(Var x, Var factors);
Var first_channels(Var x, int64_t count);  // (.., C) -> (.., count)
// A group's channels at all positions as one row, and back.
Var gather_groups(Var x, int64_t groups);  // (B, T, C) -> (B, G, T C / G)
Var scatter_groups(Var x, int64_t time);   // (B, G, T C / G) -> (B, T, C)

// ---- statistics (ops/statistics.cpp): what norms are made of ----
// Over what a statistic runs: the C channels of one token; the T positions of one sequence, per channel; all positions
// of the batch, per channel.
enum class Over { channels, time, batch };
struct Statistic {
  Over over = Over::channels;
  bool masked = false;  // ignored positions (target -1) stay out of the statistic; not for Over::channels
  // Running statistics (Over::batch only): a state of shape (C), and the weight of the new value. Training uses the
  // batch's value and moves the state, evaluation uses the state. The variance kept is the unbiased one, n / (n - 1)
  // times the biased one used (PyTorch's convention).
  Var running = {};
  double momentum = 0.1;
};
Var center(Var x, const Statistic& s);           // x - mean(x)
Var rms(Var x, double eps, const Statistic& s);  // sqrt(mean(x^2) + eps): (B, T, 1), (B, C) or (C) for the three kinds
Var divide(Var x, Var statistic, Over over);     // x / statistic

// Fused LayerNorm (centered) or RMSNorm over the last dimension: gain (x - mean) / sqrt(mean((x - mean)^2) + eps) +
// bias.
Var row_norm(Var x, Var gain, Var bias, double eps, bool centered);  // (ops/row_norm.cpp)

// ---- attention and loss ----
// How a query and a key give a score: s = scale q k, and with a cap c > 0 then c tanh(s / c) (Gemma 2, Gemma Team 2024,
// arXiv:2408.00118).
struct Scores {
  std::optional<double> scale = {};  // absent: 1 / sqrt(dh), Vaswani et al. 2017
  double cap = 0;                    // 0: none
};
// Causal softmax(scores) v per head; query head h reads key head h / (H / KV).  (ops/attention.cpp)
// (B, T, H dh) (B, T, KV dh) (B, T, KV dh) -> (B, T, H dh)
Var attention(Var q, Var k, Var v, int64_t heads, int64_t kv_heads, Scores scores = {});
// Rotary positions (Su et al. 2021), pairs (i, i + dh / 2) of each head turned by t / 10000^(2 i / dh).  (ops/rope.cpp)
Var rope(Var x, int64_t heads);  // (B, T, H dh) -> same
// Sum over the valid targets of -log softmax(logits)[target], in nats.  (ops/cross_entropy.cpp)
Var cross_entropy(Var logits);  // (B, T, V) -> (1)
// Sum over the valid targets of (log Z)^2, Z = sum exp(logits): times a small coefficient it keeps softmax's free
// offset near 0 (PaLM, Chowdhery et al. 2022, arXiv:2204.02311, section 5).  (ops/z_loss.cpp)
Var z_loss(Var logits);  // (B, T, V) -> (1)

}  // namespace normlab
