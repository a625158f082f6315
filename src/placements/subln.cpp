// Sub-LN, Wang et al. 2022 (Magneto), decoder-only: Pre-Norm with a second norm inside each branch, before the
// attention's output projection and before the feed-forward's second matrix. Xavier times sqrt(ln(2 N)), an
// up-scaling from N = 2 on, for value, attention out and feed-forward matrices, gain 1 for query and key; a gate is
// scaled like its up matrix, which the paper does not cover. Keeps the model's update bounded, independent of depth.
#include <cmath>

#include "normlab/placement.h"

namespace normlab {

extern const Placement subln;
const Placement subln = {
    .name = "subln",
    .formula = "x <- x + F(N(x)); inside F: W_out N(attention), W_down N(f(W_up x))",
    .source = "Wang et al. 2022, arXiv:2210.06423",
    .init_rule = "gamma = sqrt(ln(2 N)) on value, attention out and ffn matrices",
    .final_norm = true,
    .options = {{"gamma", NAN, 0, 1e6, OptionSpec::Kind::number, "init gain; auto = sqrt(ln(2 N))", false,
                 [](int64_t layers) { return std::sqrt(std::log(2.0 * static_cast<double>(layers))); }}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = add(s.x, f(w.norm("norm_in", s.x)));
          return s;
        },
    .inside = [](Wire& w, Inside at, Var x,
                 int64_t) { return at == Inside::mixed || at == Inside::hidden ? w.norm("norm_mid", x) : x; },
    .init_gain =
        [](const MatrixInfo& m, const Options& options) {
          return in_value_path(m.role) ? option_value(options, subln.options, "gamma", m.layers) : 1.0;
        },
};

}  // namespace normlab
