// GroupNorm, Wu & He 2018, eq. 7, as PyTorch's GroupNorm of (N, C, L) has it: the channels of a group at all positions
// of a sequence together. One group per channel is InstanceNorm.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef groupnorm_time;
const NormDef groupnorm_time = {
    .name = "groupnorm_time",
    .formula =
        "g * (x - mean_group(x)) / sqrt(var_group(x) + eps) + b over groups of channels at all positions of one "
        "sequence, padding too",
    .source = "Wu & He 2018, arXiv:1803.08494",
    .default_eps = 1e-5,
    .eps_reason = "PyTorch's value",
    .reach = Reach::sequence,
    .shift_invariant = true,
    .scale_invariant = true,
    .channels_ordered = true,
    .options = {{"groups", 4, 1, 1 << 20, OptionSpec::Kind::integer, "groups of channels; must divide the width",
                 true}},
    .define =
        [](const NormSite& s, Var x) {
          const Var c = center(gather_groups(x, static_cast<int64_t>(s.option("groups"))), {});
          const Var normed = scatter_groups(divide(c, rms(c, s.eps(), {}), Over::channels), x.shape()[1]);
          const Var gain = s.gain();
          return shift_channels(scale_channels(normed, gain), s.bias());
        },
};

}  // namespace normlab
