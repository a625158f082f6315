// ResiDual, Xie et al. 2023: two streams fed by the same branch. x is Post-Norm's and feeds the branch; y only sums, as
// Pre-Norm's stream does, so gradients do not vanish; their sum with y normed is the result. y's own norm ("dual_norm")
// is part of the formula, so no final norm follows. `scale` keeps y small under fp16; the norm takes it out again, up
// to eps.
#include "normlab/placement.h"

namespace normlab {

extern const Placement residual;
const Placement residual = {
    .name = "residual",
    .formula = "f = F(x), x <- N(x + f), y <- y + scale f, y0 = scale x0; result N(y) + x",
    .source = "Xie et al. 2023, arXiv:2304.14802",
    .final_norm = false,
    .options = {{"scale", 1, 1e-6, 1e6, OptionSpec::Kind::number, "factor on all that enters the second stream"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          const Var out = f(s.x);
          return Stream{w.norm("norm_post", add(s.x, out)), add(s.y, out, 1, w.option("scale"))};
        },
    .start =
        [](Wire& w, Var x) {
          return Stream{x, affine(x, w.option("scale"), 0)};
        },
    .finish = [](Wire& w, Stream s) { return add(w.norm("dual_norm", s.y), s.x); },
};

}  // namespace normlab
