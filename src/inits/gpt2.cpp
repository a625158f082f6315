// Radford et al. 2019: all N(0, 0.02^2); the matrices that write into the residual stream divided by sqrt(2 N), their
// number.
#include "normlab/init.h"

namespace normlab {

extern const InitDef gpt2_init;
const InitDef gpt2_init = {
    .name = "gpt2",
    .formula = "N(0, 0.02^2); attention out and ffn down N(0, 0.02^2 / (2 N))",
    .source = "Radford et al. 2019",
    .matrix =
        [](const MatrixInfo& m) {
          return Draw::normal(m.writes_to_stream() ? 0.02 / std::sqrt(2.0 * static_cast<double>(m.layers)) : 0.02);
        },
};

}  // namespace normlab
