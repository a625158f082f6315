// Partial RMSNorm, Zhang & Sennrich 2019: the root mean square of the first k = ceil(p C) channels stands for
// that of all C. The paper's code takes the floor, which leaves none in narrow models.
#include <algorithm>
#include <cmath>

#include "normlab/norm.h"

namespace normlab {

// Channels that are looked at. A product a rounding above an integer is that integer.
static int64_t part_of(double share, int64_t width) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share * static_cast<double>(width) - 1e-9)));
}

extern const NormDef prmsnorm;
const NormDef prmsnorm = {
    .name = "prmsnorm",
    .formula = "g * x / sqrt(mean_first(x^2) + eps), the mean over the first ceil(p C) of C channels",
    .source = "Zhang & Sennrich 2019, arXiv:1910.07467",
    .default_eps = 1e-8,
    .eps_reason = "the value of the paper's code",
    .scale_invariant = true,
    .channels_ordered = true,
    .options = {{"share", 0.0625, 1e-6, 1, OptionSpec::Kind::number,
                 "p, the share of the channels; the paper's is 6.25 %"}},
    .caution = [](const Options& options, int64_t width) -> std::string {
      return part_of(option_value(options, prmsnorm.options, "share"), width) > 1
                 ? ""
                 : "it looks at the first channel only and divides by its size";
    },
    .define =
        [](const NormSite& s, Var x) {
          const Var part = first_channels(x, part_of(s.option("share"), s.width()));
          return scale_channels(divide(x, rms(part, s.eps(), {}), Over::channels), s.gain());
        },
};

}  // namespace normlab
