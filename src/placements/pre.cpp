// Pre-Norm: the norm before the branch; the stream itself stays unnormed, so one final norm stands before the head.
#include "normlab/placement.h"

namespace normlab {

extern const Placement pre;
const Placement pre = {
    .name = "pre",
    .formula = "x <- x + F(N(x))",
    .source = "Xiong et al. 2020, arXiv:2002.04745",
    .final_norm = true,
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = add(s.x, f(w.norm("norm_in", s.x)));
          return s;
        },
};

}  // namespace normlab
