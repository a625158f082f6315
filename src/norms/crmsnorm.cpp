// CRMSNorm, Jiang, Gu, Zhu & Pan 2023: a vector of C + 1 channels whose mean is 0 is kept without its last one, which
// is -sum(x), and normed as RMSNorm would norm the whole. C is the width of the model here; the paper's is one narrower
// than the LayerNorm model it stands for.
#include <cmath>

#include "normlab/norm.h"

namespace normlab {

extern const NormDef crmsnorm;
const NormDef crmsnorm = {
    .name = "crmsnorm",
    .formula = "g * x / sqrt((sum(x^2) + sum(x)^2) / (C + 1) + eps)",
    .source = "Jiang, Gu, Zhu & Pan 2023, arXiv:2305.14858",
    .default_eps = 1e-5,
    .eps_reason = "the value of the paper's code",
    .scale_invariant = true,
    .define =
        [](const NormSite& s, Var x) {
          // u = (x - m) + sqrt(C + 1) m, m the mean, has sum(u^2) = sum(x^2) + C m^2 (C + 1 - 1) = sum(x^2) + sum(x)^2.
          const auto width = static_cast<double>(s.width());
          const Var centered = center(x, {});
          const Var u = add(x, centered, std::sqrt(width + 1), 1 - std::sqrt(width + 1));
          const double share = width / (width + 1);  // of C in C + 1
          const Var root = affine(rms(u, s.eps() / share, {}), std::sqrt(share), 0);
          return scale_channels(divide(x, root, Over::channels), s.gain());
        },
};

}  // namespace normlab
