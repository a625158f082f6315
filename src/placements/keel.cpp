// KEEL, Chen & Wei 2026 (Post-LayerNorm Is Back): Post-Norm whose stream weighs alpha = L = 2 N, the number of
// sub-layers, and whose branch is normed first. A sub-layer's Jacobian along the stream is then about
// alpha / sqrt(alpha^2 + 1), whose product over L sub-layers goes to 1, not to 2^(-L/2) as Post-Norm's. The first layer
// differs: its attention has no outer norm, and both its sub-layers have alpha = 1. Its norms have gains only: take
// RMSNorm. The paper trains 1024 sub-layers, and at 64 it stands rates up to 1.0e-2, Pre-Norm 7.7e-3, Post-Norm 3.0e-4.
#include <cmath>

#include "normlab/placement.h"

namespace normlab {

extern const Placement keel;
const Placement keel = {
    .name = "keel",
    .formula = "x <- N2(alpha x + F(N1(x))), alpha = 2 N; first layer alpha = 1, no N2 after attention",
    .source = "Chen & Wei 2026, arXiv:2601.19895",
    .final_norm = false,
    .options = {{"alpha", NAN, 0, 1e6, OptionSpec::Kind::number, "factor on the stream; auto = 2 N", false,
                 [](int64_t layers) { return 2.0 * static_cast<double>(layers); }}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = add(s.x, f(w.norm("norm_in", s.x)), w.layer == 0 ? 1 : w.option("alpha"));
          if (w.sublayer > 0) s.x = w.norm("norm_post", s.x);
          return s;
        },
};

}  // namespace normlab
