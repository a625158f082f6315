// One standard deviation for all matrices, whatever their shape.
#include "normlab/init.h"

namespace normlab {

extern const InitDef normal_init;
const InitDef normal_init = {
    .name = "normal",
    .formula = "N(0, 0.02^2) for every matrix",
    .source = "BERT, Devlin et al. 2019",
    .matrix = [](const MatrixInfo&) { return Draw::normal(0.02); },
};

}  // namespace normlab
