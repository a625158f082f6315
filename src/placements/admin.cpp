// Admin, Liu et al. 2020: Post-Norm with a learned weight per channel on the stream, omega, large enough at the start
// that no branch dominates. Its start is, by default, the closed form of the authors' admin-torch, the same for all
// M = 2 N sub-layers: sqrt((M + 1) / ln(M + 1) - 1), which keeps the output's change under small changes of the weights
// at O(log M). With `profile` it is the paper's: a forward pass with omega = 1 measures the variance of
// every branch's output f_i, and omega_i = sqrt(Var[x_0] + Var[f_1] + .. + Var[f_(i - 1)]) gives the normed stream the
// size that the plain sum would have there. Before the first norm the stream has that size by itself: omega_1 = 1, as
// in the authors' code, which differs in that its pass already uses the omegas found so far. The paper trains 100 + 100
// layers.
#include <cmath>

#include "normlab/placement.h"

namespace normlab {

extern const Placement admin;
const Placement admin = {
    .name = "admin",
    .formula = "x <- N(omega * x + F(x)), omega learned per channel",
    .source = "Liu et al. 2020, arXiv:2004.08249",
    .final_norm = false,
    .options = {{"omega", NAN, 0, 1e6, OptionSpec::Kind::number,
                 "start of omega without profile; auto = sqrt((M + 1) / ln(M + 1) - 1), M = 2 N", false,
                 [](int64_t layers) {
                   const double m = 2.0 * static_cast<double>(layers) + 1;
                   return std::sqrt(m / std::log(m) - 1);
                 }},
                {"profile", 0, 0, 1, OptionSpec::Kind::boolean,
                 "start of omega measured in a forward pass of the first batch, by sub-layer"}},
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          const double start = w.option("profile") != 0 ? 1 : w.option("omega");
          const Var omega = w.learned("omega", start, s.x.shape().cols());
          const Var out = f(s.x);
          s.x = w.norm("norm_post", add(scale_channels(s.x, omega), out));
          return s;
        },
    .measured = {"profile", "omega",
                 [](const std::vector<SublayerVariances>& sublayers) {
                   std::vector<double> omega;
                   double variance = sublayers[0].stream;
                   for (const SublayerVariances& s : sublayers) {
                     omega.push_back(omega.empty() ? 1 : std::sqrt(variance));
                     variance += s.branch;
                   }
                   return omega;
                 }},
};

}  // namespace normlab
