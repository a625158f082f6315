// Sandwich: a norm before the branch and one after it, before the sum (CogView, Ding et al. 2021, section 2.4; Peri-LN,
// Gemma 2).
#include "normlab/placement.h"

namespace normlab {

extern const Placement sandwich;
const Placement sandwich = {
    .name = "sandwich",
    .formula = "x <- x + N2(F(N1(x)))",
    .source = "Ding et al. 2021, arXiv:2105.13290",
    .init_rule = "none",
    .final_norm = true,
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = add(s.x, w.norm("norm_out", f(w.norm("norm_in", s.x))));
          return s;
        },
};

}  // namespace normlab
