// InstanceNorm over time, Ulyanov et al. 2016, eq. 2 with time in place of the image: per sequence and channel.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef instancenorm;
const NormDef instancenorm = {
    .name = "instancenorm",
    .formula = "g * (x - mean_t(x)) / sqrt(var_t(x) + eps) + b over the positions of one sequence",
    .source = "Ulyanov, Vedaldi & Lempitsky 2016, arXiv:1607.08022",
    .default_eps = 1e-5,
    .eps_reason = "PyTorch's value",
    .reach = Reach::sequence,
    .shift_invariant = true,
    .scale_invariant = true,
    .options = {{"masked", 1, 0, 1, OptionSpec::Kind::boolean,
                 "padding and ignored positions stay out of the statistics"}},
    .define =
        [](const NormSite& s, Var x) {
          const Statistic statistic{.over = Over::time, .masked = s.option("masked") != 0};
          const Var c = center(x, statistic);
          const Var normed = divide(c, rms(c, s.eps(), statistic), Over::time);
          const Var gain = s.gain();
          return shift_channels(scale_channels(normed, gain), s.bias());
        },
};

}  // namespace normlab
