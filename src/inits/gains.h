// What inits share with each other and with the placements whose papers they come from.
#pragma once

#include "normlab/init.h"

namespace normlab {

Draw xavier(const MatrixInfo& m);
Draw xavier_uniform(const MatrixInfo& m);

extern const DepthGain deepnorm_gain, subln_gain, tfixup_gain;

}  // namespace normlab
