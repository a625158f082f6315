// AdaNorm, Xu et al. 2019: LayerNorm whose gain is a function of its own output, C (1 - k h), taken as a
// constant by the backward. It has neither gain nor bias to learn. The variance is LayerNorm's, as in the paper; the
// paper's code has the unbiased one and eps outside the root.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef adanorm;
const NormDef adanorm = {
    .name = "adanorm",
    .formula = "C (1 - k h) * h, h = (x - mean(x)) / sqrt(var(x) + eps)",
    .source = "Xu, Sun, Zhang, Zhao & Lin 2019, arXiv:1911.07013",
    .default_eps = 1e-5,
    .eps_reason = "the value of the paper's code",
    .shift_invariant = true,
    .scale_invariant = true,
    .has_affine = false,
    .detaching = "detach",
    .options = {{"scale", 1, 1e-6, 1e6, OptionSpec::Kind::number, "C"},
                {"slope", 0.1, 0, 1e6, OptionSpec::Kind::number, "k"},
                {"detach", 1, 0, 1, OptionSpec::Kind::boolean, "no gradient through C (1 - k h), as in the paper"}},
    .define =
        [](const NormSite& s, Var x) {
          const Var c = center(x, {});
          const Var h = divide(c, rms(c, s.eps(), {}), Over::channels);
          const Var factor = affine(h, -s.option("slope") * s.option("scale"), s.option("scale"));
          return multiply(s.option("detach") != 0 ? detach(factor) : factor, h);
        },
};

}  // namespace normlab
