// Residual branches without any norm: the control.
#include "normlab/placement.h"

namespace normlab {

extern const Placement no_placement;
const Placement no_placement = {
    .name = "none",
    .formula = "x <- x + F(x)",
    .source = "control",
    .final_norm = false,
    .has_norms = false,
    .sublayer =
        [](Wire&, Stream s, Branch& f) {
          s.x = add(s.x, f(s.x));
          return s;
        },
};

}  // namespace normlab
