// No norm: the control.
#include "normlab/norm.h"

namespace normlab {

extern const NormDef no_norm;
const NormDef no_norm = {
    .name = "none",
    .formula = "x",
    .source = "control",
    .default_eps = 0,
    .eps_reason = "nothing is divided",
    .has_affine = false,
    .define = [](const NormSite&, Var x) { return x; },
};

}  // namespace normlab
