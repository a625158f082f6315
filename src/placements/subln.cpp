// Sub-LN, Wang et al. 2022 (Magneto), decoder-only: Pre-Norm with a second norm inside each branch, before the
// attention's output projection and before the feed-forward's second matrix, and the init's gain gamma
// (inits/subln.cpp).
#include "inits/gains.h"
#include "normlab/placement.h"

namespace normlab {

extern const Placement subln;
const Placement subln = {
    .name = "subln",
    .formula = "x <- x + F(N(x)); inside F: W_out N(attention), W_down N(f(W_up x))",
    .source = "Wang et al. 2022, arXiv:2210.06423",
    .final_norm = true,
    .options = {{"gamma", NAN, 0, 1e6, OptionSpec::Kind::number, "init gain; auto = sqrt(ln(2 N))", false,
                 subln_gain.factor}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = add(s.x, f(w.norm("norm_in", s.x)));
          return s;
        },
    .inside = [](Wire& w, Inside at, Var x,
                 int64_t) { return at == Inside::mixed || at == Inside::hidden ? w.norm("norm_mid", x) : x; },
    .init_gain = &subln_gain,
};

}  // namespace normlab
