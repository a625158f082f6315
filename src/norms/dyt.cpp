// DyT, Zhu et al. 2025: not a norm, but put in the place of one; alpha is one learned number. The paper's LLaMAs start
// it at 1.0 up to width 1024, lower the wider the model, and have no bias.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef dyt;
const NormDef dyt = {
    .name = "dyt",
    .formula = "g * tanh(alpha x) + b, alpha a learned number",
    .source = "Zhu, Chen, He, LeCun & Liu 2025, arXiv:2503.10622",
    .default_eps = 0,
    .eps_reason = "not read",
    .options = {{"alpha", 0.5, 1e-6, 1e6, OptionSpec::Kind::number, "first value of alpha"}},
    .define =
        [](const NormSite& s, Var x) {
          const Var y = activation(scale_channels(x, s.number("alpha", s.option("alpha"))), Activation::tanh);
          const Var gain = s.gain();
          return shift_channels(scale_channels(y, gain), s.bias());
        },
};

}  // namespace normlab
