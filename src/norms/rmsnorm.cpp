// RMSNorm, Zhang & Sennrich 2019, eq. 4. The paper has no eps; it stands inside the root in LLaMA, outside in the
// paper's PyTorch code, and bounds the divisor from below where PyTorch's normalize does the work (x-transformers).
// With unit_offset: Gemma's.
#include "normlab/norm.h"

namespace normlab {

namespace {

constexpr double kInside = 0, kOutside = 1, kClamped = 2;  // places among the option's words

Var gain(const NormSite& s) { return s.gain(1, s.option("unit_offset") != 0); }

Var divisor(const NormSite& s, Var x) {
  const double position = s.option("eps_position");
  if (position == kInside) return rms(x, s.eps(), {});
  const Var root = rms(x, 0, {});
  return position == kOutside ? affine(root, 1, s.eps()) : at_least(root, s.eps());
}

Var define(const NormSite& s, Var x) { return scale_channels(divide(x, divisor(s, x), Over::channels), gain(s)); }

}  // namespace

extern const NormDef rmsnorm;
const NormDef rmsnorm = {
    .name = "rmsnorm",
    .formula = "g * x / sqrt(mean(x^2) + eps)",
    .source = "Zhang & Sennrich 2019, arXiv:1910.07467",
    .default_eps = 1e-6,
    .eps_reason = "LLaMA's value",
    .scale_invariant = true,
    .options = {{.name = "eps_position",
                 .standard = kInside,
                 .min = kInside,
                 .max = kClamped,
                 .kind = OptionSpec::Kind::word,
                 .help = "sqrt(mean(x^2) + eps), sqrt(mean(x^2)) + eps, or max(sqrt(mean(x^2)), eps)",
                 .words = {"inside", "outside", "clamped"}},
                unit_offset_option()},
    .define = define,
    .fused =
        [](const NormSite& s, Var x) {
          // The kernel knows one position.
          if (s.option("eps_position") != kInside) return define(s, x);
          return row_norm(x, gain(s), {}, s.eps(), false);
        },
};

}  // namespace normlab
