// Post-Norm: the norm after the sum, as in the original Transformer (Vaswani et al. 2017, section 3.1). Needs no final
// norm: its output is normed.
#include "normlab/placement.h"

namespace normlab {

extern const Placement post;
const Placement post = {
    .name = "post",
    .formula = "x <- N(x + F(x))",
    .source = "Vaswani et al. 2017, arXiv:1706.03762",
    .final_norm = false,
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = w.norm("norm_post", add(s.x, f(s.x)));
          return s;
        },
};

}  // namespace normlab
