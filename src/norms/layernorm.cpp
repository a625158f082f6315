// LayerNorm, Ba, Kiros & Hinton 2016, eq. 4; the variance is the biased one. Without bias: GPT-2 as nanoGPT trains it;
// with unit_offset: Megatron's LayerNorm-1p.
#include "normlab/norm.h"

namespace normlab {

namespace {

Var gain(const NormSite& s) { return s.gain(1, s.option("unit_offset") != 0); }
Var bias(const NormSite& s) { return s.option("bias") != 0 ? s.bias() : Var{}; }

}  // namespace

extern const NormDef layernorm;
const NormDef layernorm = {
    .name = "layernorm",
    .formula = "g * (x - mean(x)) / sqrt(var(x) + eps) + b",
    .source = "Ba, Kiros & Hinton 2016, arXiv:1607.06450",
    .default_eps = 1e-5,
    .eps_reason = "PyTorch's and GPT-2's value",
    .shift_invariant = true,
    .scale_invariant = true,
    .options = {{"bias", 1, 0, 1, OptionSpec::Kind::boolean, "a learned bias beside the gain"}, unit_offset_option()},
    .define =
        [](const NormSite& s, Var x) {
          const Var c = center(x, {});
          const Var normed = divide(c, rms(c, s.eps(), {}), Over::channels);
          const Var g = gain(s);
          return shift_channels(scale_channels(normed, g), bias(s));
        },
    .fused =
        [](const NormSite& s, Var x) {
          const Var g = gain(s);
          return row_norm(x, g, bias(s), s.eps(), true);
        },
};

}  // namespace normlab
