// HybridNorm, Zhuo et al. 2025: attention without a norm on its input but with one on each head's queries, keys and
// values; the feed-forward Post-Norm-like around a normed stream. HybridNorm*, first_pre: the first layer norms
// attention's input too and its feed-forward is Pre-Norm. The paper draws matrices as GPT-2 (init = "gpt2"). 550M
// parameters: perplexity 20.00, HybridNorm* 19.85, Pre-Norm 20.30, Post-Norm 20.43; with 29 layers Post-Norm diverges.
// Queries, keys and values are normed here whatever model.qk_norm and model.v_norm add.
#include "normlab/placement.h"

namespace normlab {

extern const Placement hybridnorm;
const Placement hybridnorm = {
    .name = "hybridnorm",
    .formula = "x <- x + A(x), n = N(x), x <- n + F(n); inside A: softmax(N(q) N(k)^T / sqrt(dh)) N(v) per head",
    .source = "Zhuo et al. 2025, arXiv:2503.04598",
    .final_norm = true,
    .options = {{"first_pre", 0, 0, 1, OptionSpec::Kind::boolean, "HybridNorm*: Pre-Norm sites in the first layer"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          const bool attention = w.sublayer % 2 == 0, pre = w.layer == 0 && w.option("first_pre") != 0;
          const Var in = attention && !pre ? s.x : w.norm("norm_in", s.x);
          s.x = add(attention || pre ? s.x : in, f(in));
          return s;
        },
    .inside =
        [](Wire& w, Inside at, Var x, int64_t heads) {
          switch (at) {
            case Inside::query: return w.head_norm("norm_q", x, heads);
            case Inside::key: return w.head_norm("norm_k", x, heads);
            case Inside::value: return w.head_norm("norm_v", x, heads);
            default: return x;
          }
        },
};

}  // namespace normlab
