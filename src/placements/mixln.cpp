// Mix-LN, Li, Yin & Liu 2024: the first floor(share N) layers are Post-Norm, the rest Pre-Norm, so that early layers
// leave gradient to the late ones and late layers still change the stream. The paper takes a share of a quarter: 3
// of 12 layers at 130M parameters, perplexity 26.07 against Pre-Norm's 26.73.
#include <cmath>

#include "normlab/placement.h"

namespace normlab {

extern const Placement mixln;
const Placement mixln = {
    .name = "mixln",
    .formula = "x <- N(x + F(x)) in the first floor(share N) layers, x <- x + F(N(x)) in the rest",
    .source = "Li, Yin & Liu 2024, arXiv:2412.13795",
    .final_norm = true,
    .options = {{"share", 0.25, 0, 1, OptionSpec::Kind::number, "share of layers that are Post-Norm, from the first"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          // 1e-9: a share such as 0.29 of 100 layers is 29 of them, whatever the product rounds to
          const double post_layers = std::floor(w.option("share") * static_cast<double>(w.layers) + 1e-9);
          s.x = static_cast<double>(w.layer) < post_layers ? w.norm("norm_post", add(s.x, f(s.x)))
                                                           : add(s.x, f(w.norm("norm_in", s.x)));
          return s;
        },
};

}  // namespace normlab
