// SkipInit, De & Smith 2020: no norm; a learned factor alpha at the end of each branch, from 0 or from at most
// 1 / sqrt(number of branches). It gives deep residual networks what batch normalization gives them at initialisation:
// branches small beside the skip.
#include "normlab/placement.h"

namespace normlab {

extern const Placement skipinit;
const Placement skipinit = {
    .name = "skipinit",
    .formula = "x <- x + alpha F(x), alpha learned, one per branch",
    .source = "De & Smith 2020, arXiv:2002.10444",
    .final_norm = false,
    .has_norms = false,
    .options = {{"alpha", 0, -1e6, 1e6, OptionSpec::Kind::number, "start of alpha; up to 1 / sqrt(2 N) is usual"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          const Var alpha = w.learned("alpha", w.option("alpha"), 1);
          s.x = add(s.x, scale_parts(f(s.x), alpha));
          return s;
        },
};

}  // namespace normlab
