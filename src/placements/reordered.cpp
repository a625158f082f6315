// The norm on the branch's output only: OLMo 2's reordered norm and Swin Transformer V2's res-post-norm (Liu et al.
// 2021, arXiv:2111.09883). Swin V2 starts gain and bias at 0, so that the model begins as the identity: gain = 0. OLMo
// 2 draws all matrices from N(0, 0.02^2) (init = "normal") and norms queries and keys over their full width, not per
// head.
#include "normlab/placement.h"

namespace normlab {

extern const Placement reordered;
const Placement reordered = {
    .name = "reordered",
    .formula = "x <- x + N(F(x))",
    .source = "OLMo 2, arXiv:2501.00656",
    .final_norm = true,
    .options = {{"gain", 1, 0, 1e6, OptionSpec::Kind::number, "initial gain of the norms; Swin V2: 0"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = add(s.x, w.norm("norm_out", f(s.x), w.option("gain")));
          return s;
        },
};

}  // namespace normlab
