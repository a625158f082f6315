// BatchNorm, Ioffe & Szegedy 2015, algorithm 1, per channel over all positions of all sequences. Running statistics as
// in PyTorch: the output uses the biased variance, the running value keeps the unbiased one, momentum weighs the new
// value.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef batchnorm;
const NormDef batchnorm = {
    .name = "batchnorm",
    .formula = "g * (x - mean_bt(x)) / sqrt(var_bt(x) + eps) + b over batch and time; running statistics at evaluation",
    .source = "Ioffe & Szegedy 2015, arXiv:1502.03167",
    .default_eps = 1e-5,
    .eps_reason = "PyTorch's value",
    .reach = Reach::batch,
    .shift_invariant = true,
    .scale_invariant = true,
    .options = {{"momentum", 0.1, 0, 1, OptionSpec::Kind::number, "weight of the new value in the running statistics"},
                {"masked", 1, 0, 1, OptionSpec::Kind::boolean,
                 "padding and ignored positions stay out of the statistics"}},
    .define =
        [](const NormSite& s, Var x) {
          Statistic statistic{.over = Over::batch, .masked = s.option("masked") != 0, .momentum = s.option("momentum")};
          statistic.running = s.state("running_mean", 0);
          const Var c = center(x, statistic);
          statistic.running = s.state("running_var", 1);
          const Var normed = divide(c, rms(c, s.eps(), statistic), Over::batch);
          const Var gain = s.gain();
          return shift_channels(scale_channels(normed, gain), s.bias());
        },
};

}  // namespace normlab
