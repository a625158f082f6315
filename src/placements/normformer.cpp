// NormFormer, Shleifer et al. 2021: Pre-Norm with three additions that level the gradients of early and late layers: a
// norm after attention's output projection, a learned factor on each head ("head_scale"), and a norm before the
// feed-forward's second matrix. Optional, as in the paper's small models: a learned factor per channel on the
// feed-forward's skip ("skip_scale"). All factors start at 1. The paper trains 125M parameters at a rate of 3e-3, where
// GPT-3's is 6e-4.
#include "normlab/placement.h"

namespace normlab {

extern const Placement normformer;
const Placement normformer = {
    .name = "normformer",
    .formula =
        "x <- x + N(A(N(x))), x <- lambda * x + F(N(x)); inside A: c_h head_h, c_h learned; inside F: "
        "W_down N(f(W_up x))",
    .source = "Shleifer et al. 2021, arXiv:2110.09456",
    .final_norm = true,
    .options = {{"scale_skip", 0, 0, 1, OptionSpec::Kind::boolean,
                 "lambda, a learned factor per channel on the feed-forward's skip; off: 1"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          const bool attention = w.sublayer % 2 == 0;
          const Var out = f(w.norm("norm_in", s.x));
          if (attention) return Stream{add(s.x, w.norm("norm_out", out)), {}};
          const bool scaled = w.option("scale_skip") != 0;
          const Var skip = scaled ? scale_channels(s.x, w.learned("skip_scale", 1, s.x.shape().cols())) : s.x;
          return Stream{add(skip, out), {}};
        },
    .inside =
        [](Wire& w, Inside at, Var x, int64_t heads) {
          if (at == Inside::mixed) return scale_parts(x, w.learned("head_scale", 1, heads));
          return at == Inside::hidden ? w.norm("norm_mid", x) : x;
        },
};

}  // namespace normlab
