// ScaleNorm, Nguyen & Salazar 2019: one learned length for all channels, from sqrt(C) as in their code. Without
// gain the length stays.
#include <cmath>

#include "normlab/norm.h"

namespace normlab {

extern const NormDef scalenorm;
const NormDef scalenorm = {
    .name = "scalenorm",
    .formula = "g * x / max(|x|, eps), one g for all C channels, at first sqrt(C)",
    .source = "Nguyen & Salazar 2019, arXiv:1910.05895",
    .default_eps = 1e-3,
    .eps_reason =
        "gradients through a row of zeros grow by sqrt(C) / eps a norm; with the 1e-5 of the paper's code they "
        "overflow",
    .scale_invariant = true,
    .define =
        [](const NormSite& s, Var x) {
          const double root = std::sqrt(static_cast<double>(s.width()));
          const Var length = affine(rms(x, 0, {}), root, 0);
          const Var unit = divide(x, at_least(length, s.eps()), Over::channels);
          return s.affine() ? scale_channels(unit, s.common_gain(root)) : affine(unit, root, 0);
        },
};

}  // namespace normlab
