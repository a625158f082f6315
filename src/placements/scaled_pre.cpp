// Pre-Norm whose stream fades: with 0 < alpha < 1 sub-layer k back weighs alpha^k, and the variance of a stream of
// independent branches of variance v stays below v / (1 - alpha^2), 2.8 v for 0.8 and 5.3 v for 0.9, at any depth,
// where Pre-Norm's grows without end. The price: the gradient fades the same way. The scale of skips as such: Liu et
// al. 2021; as a constant beside Pre-Norm: x-transformers' scale_residual_constant.
#include "normlab/placement.h"

namespace normlab {

extern const Placement scaled_pre;
const Placement scaled_pre = {
    .name = "scaled_pre",
    .formula = "x <- alpha x + F(N(x))",
    .source = "Liu et al. 2021, arXiv:2105.07205",
    .final_norm = true,
    .options = {{"alpha", 0.9, 0, 1e6, OptionSpec::Kind::number,
                 "factor on the stream; 0.8 to 0.9 is usual, 1 is pre"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = add(s.x, f(w.norm("norm_in", s.x)), w.option("alpha"));
          return s;
        },
};

}  // namespace normlab
