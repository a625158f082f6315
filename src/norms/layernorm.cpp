// LayerNorm, Ba, Kiros & Hinton 2016, eq. 4; the variance is the biased one.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef layernorm;
const NormDef layernorm = {
    .name = "layernorm",
    .formula = "g * (x - mean(x)) / sqrt(var(x) + eps) + b",
    .source = "Ba, Kiros & Hinton 2016, arXiv:1607.06450",
    .default_eps = 1e-5,
    .eps_reason = "PyTorch's and GPT-2's value",
    .shift_invariant = true,
    .scale_invariant = true,
    .define =
        [](const NormSite& s, Var x) {
          const Var c = center(x, {});
          const Var normed = divide(c, rms(c, s.eps(), {}), Over::channels);
          const Var gain = s.gain();
          return shift_channels(scale_channels(normed, gain), s.bias());
        },
    .fused =
        [](const NormSite& s, Var x) {
          const Var gain = s.gain();
          return row_norm(x, gain, s.bias(), s.eps(), true);
        },
};

}  // namespace normlab
