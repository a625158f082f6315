// GroupNorm, Wu & He 2018, eq. 7, per token: the channels of one token in groups, so no position sees another.
#include <algorithm>

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
    .channels_ordered = true,
    .options = {{"groups", 4, 1, 1 << 20, OptionSpec::Kind::integer,
                 "groups of channels; must divide the width; 1 is LayerNorm", true}},
    .caution = [](const Options& options, int64_t width) -> std::string {
      const auto size = static_cast<double>(width) / option_value(options, groupnorm.options, "groups");
      return size > 2    ? ""
             : size == 2 ? "groups of two channels are normed to -1 and 1, whatever they hold"
                         : "a group of one channel is normed to 0";
    },
    .define =
        [](const NormSite& s, Var x) {
          // As a q/k norm it gets heads, (B, T, H, dh); the groups then lie within each head.
          Graph& g = s.graph();
          const int64_t heads = x.shape().rank() == 4 ? x.shape()[2] : 0;
          const Var whole = heads > 0 ? g.merge(x) : x;
          const Var c =
              center(g.split(whole, std::max<int64_t>(heads, 1) * static_cast<int64_t>(s.option("groups"))), {});
          const Var merged = g.merge(divide(c, rms(c, s.eps(), {}), Over::channels));
          const Var normed = heads > 0 ? g.split(merged, heads) : merged;
          const Var gain = s.gain();
          return shift_channels(scale_channels(normed, gain), s.bias());
        },
};

}  // namespace normlab
