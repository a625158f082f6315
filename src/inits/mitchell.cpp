// OLMo's "mitchell" (Groeneveld et al. 2024): variance 1 / fan_in; the matrices that write into the residual stream
// divided by sqrt(2 (l + 1)), l the layer from 0, so that a deep layer adds less; all cut at three standard deviations.
#include "normlab/init.h"

namespace normlab {

extern const InitDef mitchell_init;
const InitDef mitchell_init = {
    .name = "mitchell",
    .formula =
        "N(0, 1 / fan_in), embeddings N(0, 1 / width), attention out and ffn down of layer l = 1 .. N "
        "N(0, 1 / (2 l fan_in)); each cut at 3 standard deviations",
    .source = "OLMo, Groeneveld et al. 2024, arXiv:2402.00838",
    .matrix =
        [](const MatrixInfo& m) {
          const auto in = static_cast<double>(m.is_embedding() ? m.width : m.fan_in);
          return Draw::truncated(1 / std::sqrt(m.writes_to_stream() ? 2 * static_cast<double>(m.layer + 1) * in : in));
        },
};

}  // namespace normlab
