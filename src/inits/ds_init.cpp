// Depth-scaled initialization, Zhang, Titov & Sennrich 2019: the bound of Xavier's uniform distribution
// divided by sqrt(l) for all matrices of layer l, from 1, with the paper's alpha = 1. Outside the layers:
// xavier_uniform.
#include "inits/gains.h"

namespace normlab {

extern const InitDef ds_init;
const InitDef ds_init = {
    .name = "ds_init",
    .formula = "xavier_uniform; in layer l = 1 .. N with bound b / sqrt(l)",
    .source = "Zhang et al. 2019, arXiv:1908.11365",
    .matrix =
        [](const MatrixInfo& m) {
          Draw draw = xavier_uniform(m);
          if (m.layer >= 0) draw.std /= std::sqrt(static_cast<double>(m.layer + 1));
          return draw;
        },
};

}  // namespace normlab
