// Vectors of length 1, as PyTorch's normalize gives them; without gain what nGPT calls justnorm.
#include <cmath>

#include "normlab/norm.h"

namespace normlab {

extern const NormDef l2norm;
const NormDef l2norm = {
    .name = "l2norm",
    .formula = "g * x / max(|x|, eps)",
    .source = "nGPT, Loshchilov et al. 2024, arXiv:2410.01131; QKNorm, Henry et al. 2020, arXiv:2010.04245",
    .default_eps = 1e-3,
    .eps_reason =
        "gradients through a row of zeros grow by 1 / eps a norm; with the 1e-12 of PyTorch's normalize they overflow",
    .scale_invariant = true,
    .unit_length = true,
    .define =
        [](const NormSite& s, Var x) {
          const Var length = affine(rms(x, 0, {}), std::sqrt(static_cast<double>(s.width())), 0);
          return scale_channels(divide(x, at_least(length, s.eps()), Over::channels), s.gain());
        },
};

}  // namespace normlab
