// Admin, Liu et al. 2020: Post-Norm with a learned weight per channel on the stream, omega, large enough at the start
// that no branch dominates. The paper measures its start in a forward pass, sub-layer by sub-layer; here it is the
// closed form of the authors' admin-torch, the same for all M = 2 N sub-layers: sqrt((M + 1) / ln(M + 1) - 1), which
// keeps the output's change under small changes of the weights at O(log M). The paper trains 100 + 100 layers.
#include <cmath>

#include "normlab/placement.h"

namespace normlab {

extern const Placement admin;
const Placement admin = {
    .name = "admin",
    .formula = "x <- N(omega * x + F(x)), omega learned per channel",
    .source = "Liu et al. 2020, arXiv:2004.08249",
    .init_rule = "none",
    .final_norm = false,
    .options = {{"omega", NAN, 0, 1e6, OptionSpec::Kind::number,
                 "start of omega; auto = sqrt((M + 1) / ln(M + 1) - 1), M = 2 N", false,
                 [](int64_t layers) {
                   const double m = 2.0 * static_cast<double>(layers) + 1;
                   return std::sqrt(m / std::log(m) - 1);
                 }}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          const Var omega = w.learned("omega", w.option("omega"), s.x.shape().cols());
          s.x = w.norm("norm_post", add(scale_channels(s.x, omega), f(s.x)));
          return s;
        },
};

}  // namespace normlab
