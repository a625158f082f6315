// T-Fixup, Huang et al. 2020: Xavier, embeddings N(0, 1 / width), then value, attention out and feed-forward matrices
// and the embeddings times beta = (9 N)^(-1/4). That is the paper's constant for a decoder that also attends to an
// encoder; for a decoder-only stack it gives none, and this is our reading (its encoders have 0.67 N^(-1/4), which is
// (5 N)^(-1/4), on matrices only). Learned positions count as embeddings, a gate as an up matrix.
#include "inits/gains.h"

namespace normlab {

constinit const DepthGain tfixup_gain = {
    .option = "beta",
    .rule = "beta = (9 N)^(-1/4) on embeddings, value, attention out and ffn matrices",
    .factor = [](int64_t layers) { return std::pow(9.0 * static_cast<double>(layers), -0.25); },
    .scales = [](const MatrixInfo& m) { return m.is_embedding() || in_value_path(m.role); },
};

extern const InitDef tfixup_init;
const InitDef tfixup_init = {
    .name = "tfixup",
    .formula = "xavier; embeddings, value, attention out and ffn matrices times (9 N)^(-1/4)",
    .source = "Huang et al. 2020, ICML",
    .matrix = xavier,
    .gain = &tfixup_gain,
};

}  // namespace normlab
