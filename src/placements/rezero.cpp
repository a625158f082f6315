// ReZero, Bachlechner et al. 2020: no norm; a learned factor alpha from 0, one for both branches of a layer, as in the
// paper's Transformers. The model begins as the identity; at alpha = 0 only alpha has a gradient, so a layer's matrices
// stand still for the first update. The paper trains 128 layers of a language model without warmup.
#include "normlab/placement.h"

namespace normlab {

extern const Placement rezero;
const Placement rezero = {
    .name = "rezero",
    .formula = "x <- x + alpha F(x), alpha learned, one per layer",
    .source = "Bachlechner et al. 2020, arXiv:2003.04887",
    .final_norm = false,
    .has_norms = false,
    .options = {{"alpha", 0, -1e6, 1e6, OptionSpec::Kind::number, "start of alpha"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          const bool first = w.sublayer % 2 == 0;
          const Var alpha = first ? w.learned("alpha", w.option("alpha"), 1) : s.y;
          return Stream{add(s.x, scale_parts(f(s.x), alpha)), alpha};
        },
};

}  // namespace normlab
