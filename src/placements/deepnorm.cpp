// DeepNorm, Wang et al. 2022 (DeepNet), decoder-only column of figure 2: alpha = (2 N)^(1/4) on the stream, and the
// init's gain beta (inits/deepnorm.cpp). The norm follows the sum, so no final norm.
#include <cmath>

#include "inits/gains.h"
#include "normlab/placement.h"

namespace normlab {

extern const Placement deepnorm;
const Placement deepnorm = {
    .name = "deepnorm",
    .formula = "x <- N(alpha x + F(x)), alpha = (2 N)^(1/4)",
    .source = "Wang et al. 2022, arXiv:2203.00555",
    .final_norm = false,
    .options = {{"alpha", NAN, 0, 1e6, OptionSpec::Kind::number, "factor on the stream; auto = (2 N)^(1/4)", false,
                 [](int64_t layers) { return std::pow(2.0 * static_cast<double>(layers), 0.25); }},
                {"beta", NAN, 0, 1e6, OptionSpec::Kind::number, "init gain; auto = (8 N)^(-1/4)", false,
                 deepnorm_gain.factor}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = w.norm("norm_post", add(s.x, f(s.x), w.option("alpha")));
          return s;
        },
    .init_gain = &deepnorm_gain,
};

}  // namespace normlab
