// GroupNorm, Wu & He 2018, eq. 7, per token: the channels of one token in groups, so no position sees another.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef groupnorm;
const NormDef groupnorm = {
    .name = "groupnorm",
    .formula = "g * (x - mean_group(x)) / sqrt(var_group(x) + eps) + b over groups of one token's channels",
    .source = "Wu & He 2018, arXiv:1803.08494",
    .default_eps = 1e-5,
    .eps_reason = "PyTorch's value",
    .shift_invariant = true,
    .scale_invariant = true,
    .options = {{"groups", 4, 1, 1 << 20, OptionSpec::Kind::integer, "groups of channels; must divide the width; 1 is LayerNorm"}},
    .define = [](const NormSite& s, Var x) {
      const Var groups = s.graph().split(x, static_cast<int64_t>(s.option("groups")));
      const Var c = center(groups, {});
      const Var normed = s.graph().merge(divide(c, rms(c, s.eps(), {}), Over::channels));
      const Var gain = s.gain();
      return shift_channels(scale_channels(normed, gain), s.bias());
    },
};

}  // namespace normlab
