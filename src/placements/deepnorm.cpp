// DeepNorm, Wang et al. 2022 (DeepNet), decoder-only column of figure 2: alpha = (2 N)^(1/4) on the stream, Xavier gain
// beta = (8 N)^(-1/4) on value, attention out and feed-forward matrices, gain 1 on query and key. A gated FFN's gate is
// scaled like its up matrix, which the paper does not cover. The norm follows the sum, so no final norm.
#include <cmath>

#include "normlab/placement.h"

namespace normlab {

extern const Placement deepnorm;
const Placement deepnorm = {
    .name = "deepnorm",
    .formula = "x <- N(alpha x + F(x)), alpha = (2 N)^(1/4)",
    .source = "Wang et al. 2022, arXiv:2203.00555",
    .init_rule = "beta = (8 N)^(-1/4) on value, attention out and ffn matrices",
    .final_norm = false,
    .options = {{"alpha", NAN, 0, 1e6, OptionSpec::Kind::number, "factor on the stream; auto = (2 N)^(1/4)", false,
                 [](int64_t layers) { return std::pow(2.0 * static_cast<double>(layers), 0.25); }},
                {"beta", NAN, 0, 1e6, OptionSpec::Kind::number, "init gain; auto = (8 N)^(-1/4)", false,
                 [](int64_t layers) { return std::pow(8.0 * static_cast<double>(layers), -0.25); }}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          s.x = w.norm("norm_post", add(s.x, f(s.x), w.option("alpha")));
          return s;
        },
    .init_gain =
        [](const MatrixInfo& m, const Options& options) {
          return in_value_path(m.role) ? option_value(options, deepnorm.options, "beta", m.layers) : 1.0;
        },
};

}  // namespace normlab
