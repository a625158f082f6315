// T-Fixup, Huang et al. 2020: no norm and no warmup, by initialisation alone: Xavier, embeddings N(0, 1 / width), then
// value, attention out and feed-forward matrices and the embeddings times (9 N)^(-1/4). That is the paper's constant
// for a decoder that also attends to an encoder; for a decoder-only stack it gives none, and this is our reading
// (its encoders have 0.67 N^(-1/4), which is (5 N)^(-1/4), on matrices only). Learned positions count as embeddings,
// a gate as an up matrix.
#include <cmath>

#include "normlab/placement.h"

namespace normlab {

extern const Placement tfixup;
const Placement tfixup = {
    .name = "tfixup",
    .formula = "x <- x + F(x)",
    .source = "Huang et al. 2020, ICML",
    .init_rule = "beta = (9 N)^(-1/4) on embeddings, value, attention out and ffn matrices",
    .final_norm = false,
    .has_norms = false,
    .options = {{"beta", NAN, 0, 1e6, OptionSpec::Kind::number, "init gain; auto = (9 N)^(-1/4)", false,
                 [](int64_t layers) { return std::pow(9.0 * static_cast<double>(layers), -0.25); }}},
    .sublayer =
        [](Wire&, Stream s, Branch& f) {
          s.x = add(s.x, f(s.x));
          return s;
        },
    .init_gain =
        [](const MatrixInfo& m, const Options& options) {
          const bool embedding = m.role == Role::token_embedding || m.role == Role::position_embedding;
          const bool scaled = embedding || in_value_path(m.role);
          return scaled ? option_value(options, tfixup.options, "beta", m.layers) : 1.0;
        },
};

}  // namespace normlab
