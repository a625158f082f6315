// Sandwich: a norm before the branch and one after it, before the sum (CogView, Ding et al. 2021, section 2.4; Gemma
// 2). Peri-LN (Kim et al. 2025, arXiv:2502.02732) is the same with, as an option, a norm of the embeddings.
#include "normlab/placement.h"

namespace normlab {

extern const Placement sandwich;
const Placement sandwich = {
    .name = "sandwich",
    .formula = "x <- x + N2(F(N1(x)))",
    .source = "Ding et al. 2021, arXiv:2105.13290",
    .final_norm = true,
    .options = {{"embedding_norm", 0, 0, 1, OptionSpec::Kind::boolean, "Peri-LN's norm after the embeddings"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = add(s.x, w.norm("norm_out", f(w.norm("norm_in", s.x))));
          return s;
        },
    .start =
        [](Wire& w, Var x) {
          return Stream{w.option("embedding_norm") != 0 ? w.norm("embedding.norm", x) : x, {}};
        },
};

}  // namespace normlab
