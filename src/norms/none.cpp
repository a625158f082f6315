// No norm: the control.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef no_norm;
const NormDef no_norm = {
    .name = "none",
    .formula = "x",
    .source = "control",
    .has_affine = false,
    .define = [](const NormSite&, Var x) { return x; },
};

}  // namespace normlab
