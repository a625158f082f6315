// DeepNorm's init, Wang et al. 2022 (DeepNet), decoder-only column of figure 2: Xavier's standard deviation times
// beta = (8 N)^(-1/4), queries and keys times 1. A gated FFN's gate is scaled like its up matrix, which the paper does
// not cover.
#include "inits/gains.h"

namespace normlab {

constinit const DepthGain deepnorm_gain = {
    .option = "beta",
    .rule = "beta = (8 N)^(-1/4) on value, attention out and ffn matrices",
    .factor = [](int64_t layers) { return std::pow(8.0 * static_cast<double>(layers), -0.25); },
    .scales = [](const MatrixInfo& m) { return in_value_path(m.role); },
};

extern const InitDef deepnorm_init;
const InitDef deepnorm_init = {
    .name = "deepnorm",
    .formula = "xavier; value, attention out and ffn matrices times (8 N)^(-1/4)",
    .source = "Wang et al. 2022, arXiv:2203.00555",
    .matrix = xavier,
    .gain = &deepnorm_gain,
};

}  // namespace normlab
