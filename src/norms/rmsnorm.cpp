// RMSNorm, Zhang & Sennrich 2019, eq. 4, with eps inside the root as LLaMA does.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef rmsnorm;
const NormDef rmsnorm = {
    .name = "rmsnorm",
    .formula = "g * x / sqrt(mean(x^2) + eps)",
    .source = "Zhang & Sennrich 2019, arXiv:1910.07467",
    .default_eps = 1e-6,
    .eps_reason = "LLaMA's value",
    .scale_invariant = true,
    .define = [](const NormSite& s,
                 Var x) { return scale_channels(divide(x, rms(x, s.eps(), {}), Over::channels), s.gain()); },
    .fused = [](const NormSite& s, Var x) { return row_norm(x, s.gain(), {}, s.eps(), false); },
};

}  // namespace normlab
