// T-Fixup, Huang et al. 2020: no norm and no warmup, by initialisation alone (inits/tfixup.cpp).
#include "inits/gains.h"
#include "normlab/placement.h"

namespace normlab {

extern const Placement tfixup;
const Placement tfixup = {
    .name = "tfixup",
    .formula = "x <- x + F(x)",
    .source = "Huang et al. 2020, ICML",
    .final_norm = false,
    .has_norms = false,
    .options = {{"beta", NAN, 0, 1e6, OptionSpec::Kind::number, "init gain; auto = (9 N)^(-1/4)", false,
                 tfixup_gain.factor}},
    .sublayer =
        [](Wire&, Stream s, Branch& f) {
          s.x = add(s.x, f(s.x));
          return s;
        },
    .init_gain = &tfixup_gain,
};

}  // namespace normlab
