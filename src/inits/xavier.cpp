// Glorot & Bengio 2010, eq. 16: variance 2 / (fan_in + fan_out), drawn uniformly there and normally in most papers on
// Transformers. Embeddings are looked up, not multiplied: N(0, 1 / width) in both.
#include "inits/gains.h"

namespace normlab {

Draw xavier(const MatrixInfo& m) {
  return Draw::normal(m.is_embedding() ? 1 / std::sqrt(static_cast<double>(m.width))
                                       : std::sqrt(2.0 / static_cast<double>(m.fan_in + m.fan_out)));
}

Draw xavier_uniform(const MatrixInfo& m) {
  return m.is_embedding() ? xavier(m) : Draw::uniform(std::sqrt(6.0 / static_cast<double>(m.fan_in + m.fan_out)));
}

extern const InitDef auto_init, xavier_init, xavier_uniform_init;

const InitDef auto_init = {
    .name = "auto",
    .formula = "xavier times the placement's own gain",
    .source = "the placement's paper",
    .matrix = xavier,
    .placement_gain = true,
};

const InitDef xavier_init = {
    .name = "xavier",
    .formula = "N(0, 2 / (fan_in + fan_out)); embeddings N(0, 1 / width)",
    .source = "Glorot & Bengio 2010",
    .matrix = xavier,
};

const InitDef xavier_uniform_init = {
    .name = "xavier_uniform",
    .formula = "U(-b, b), b = sqrt(6 / (fan_in + fan_out)); embeddings N(0, 1 / width)",
    .source = "Glorot & Bengio 2010",
    .matrix = xavier_uniform,
};

}  // namespace normlab
