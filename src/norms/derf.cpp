// Derf, Chen et al. 2025: DyT with erf, and a learned shift s. The paper's GPT-2 starts alpha at 1.0.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef derf;
const NormDef derf = {
    .name = "derf",
    .formula = "g * erf(alpha x + s) + b, alpha and s learned numbers, s at first 0",
    .source = "Chen et al. 2025, arXiv:2512.10938",
    .default_eps = 0,
    .eps_reason = "not read",
    .options = {{"alpha", 0.5, 1e-6, 1e6, OptionSpec::Kind::number, "first value of alpha"}},
    .define =
        [](const NormSite& s, Var x) {
          const Var scaled = scale_channels(x, s.number("alpha", s.option("alpha")));
          const Var y = activation(shift_channels(scaled, s.number("shift", 0)), Activation::erf);
          const Var gain = s.gain();
          return shift_channels(scale_channels(y, gain), s.bias());
        },
};

}  // namespace normlab
