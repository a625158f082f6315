// Parallel branches: attention and feed-forward both read the stream that enters the layer, through one norm (GPT-J,
// Wang & Komatsuzaki 2021; PaLM, Chowdhery et al. 2022, section 2: 15 % faster at scale, no loss of quality at 62B
// parameters) or each through its own (GPT-NeoX-20B).
#include "normlab/placement.h"

namespace normlab {

extern const Placement parallel;
const Placement parallel = {
    .name = "parallel",
    .formula = "x <- x + A(N1(x)) + F(N2(x)); norms = 1: both read the same N(x)",
    .source = "GPT-NeoX-20B, Black et al. 2022, arXiv:2204.06745",
    .final_norm = true,
    .options = {{"norms", 2, 1, 2, OptionSpec::Kind::integer, "1: one for both branches, as GPT-J; 2: one for each"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          if (w.sublayer % 2 == 1) return Stream{add(s.y, f(s.z ? s.z : w.norm("norm_in", s.x))), {}, {}};
          const Var in = w.norm("norm_in", s.x);
          return Stream{s.x, add(s.x, f(in)), w.option("norms") == 1 ? in : Var{}};
        },
};

}  // namespace normlab
