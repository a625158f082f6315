// Sub-LN's init, Wang et al. 2022 (Magneto), decoder-only: Xavier's standard deviation times gamma = sqrt(ln(2 N)), an
// up-scaling from N = 2 on, queries and keys times 1; a gate is scaled like its up matrix, which the paper does not
// cover. Keeps the model's update bounded, independent of depth, where norms stand inside the branches.
#include "inits/gains.h"

namespace normlab {

constinit const DepthGain subln_gain = {
    .option = "gamma",
    .rule = "gamma = sqrt(ln(2 N)) on value, attention out and ffn matrices",
    .factor = [](int64_t layers) { return std::sqrt(std::log(2.0 * static_cast<double>(layers))); },
    .scales = [](const MatrixInfo& m) { return in_value_path(m.role); },
};

extern const InitDef subln_init;
const InitDef subln_init = {
    .name = "subln",
    .formula = "xavier; value, attention out and ffn matrices times sqrt(ln(2 N))",
    .source = "Wang et al. 2022, arXiv:2210.06423",
    .matrix = xavier,
    .gain = &subln_gain,
};

}  // namespace normlab
