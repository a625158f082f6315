// A norm and a placement that live outside the library, and a program that knows them.
#include <cmath>

#include "normlab/main.h"

using namespace normlab;

// LayerNorm by the mean absolute deviation: Hoffer et al. 2018, section 4, who take it for BatchNorm. Of a normal
// distribution the standard deviation is sqrt(pi / 2) times it.
const NormDef l1norm = {
    .name = "l1norm",
    .formula = "g * c / sqrt(pi/2 mean(|c|)^2 + eps) + b, c = x - mean(x)",
    .source = "Hoffer, Banner, Golan & Soudry 2018, arXiv:1803.01814",
    .default_eps = 1e-5,
    .eps_reason = "as LayerNorm's",
    .shift_invariant = true,
    .scale_invariant = true,
    .define =
        [](const NormSite& s, Var x) {
          const Var c = center(x, {});
          const Var size = add(activation(c, Activation::relu), activation(affine(c, -1, 0), Activation::relu));
          const Var mean = add(size, center(size, {}), 1, -1);  // in every channel, so its rms is the mean itself
          const Var deviation = rms(affine(mean, std::sqrt(std::acos(-1.0) / 2), 0), s.eps(), {});
          const Var gain = s.gain();
          return shift_channels(scale_channels(divide(c, deviation, Over::channels), gain), s.bias());
        },
};

// Post-Norm that takes the stream in twice, a norm after each: the paper's recursive skip connection with lambda = 2.
const Placement rskip = {
    .name = "rskip",
    .formula = "x <- N2(x + N1(x + F(x)))",
    .source = "Liu et al. 2021, arXiv:2105.07205",
    .final_norm = false,
    .sublayer =
        [](Wire& w, Stream s, Branch& f) {
          const Var once = w.norm("norm_out", add(s.x, f(s.x)));
          s.x = w.norm("norm_post", add(s.x, once));
          return s;
        },
};

int main(int argc, char** argv) { return main_program(argc, argv, {.norms = {&l1norm}, .placements = {&rskip}}); }
