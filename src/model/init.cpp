#include "normlab/init.h"

#include <cmath>

namespace normlab {

namespace {

bool is_embedding(Role role) { return role == Role::token_embedding || role == Role::position_embedding; }

// Glorot & Bengio 2010, eq. 16 in its normal form: variance 2 / (fan_in + fan_out). Embeddings are looked up, not
// multiplied: N(0, 1 / width).
Draw xavier(const MatrixInfo& m) {
  const double std = is_embedding(m.role) ? 1 / std::sqrt(static_cast<double>(m.width))
                                          : std::sqrt(2.0 / static_cast<double>(m.fan_in + m.fan_out));
  return {ParamSpec::Fill::normal, std};
}

// Radford et al. 2019: all N(0, 0.02); the matrices that write into the residual stream divided by sqrt(2 N), their
// number.
Draw gpt2(const MatrixInfo& m) {
  const bool writes = m.role == Role::attention_out || m.role == Role::ffn_down;
  return {ParamSpec::Fill::normal, writes ? 0.02 / std::sqrt(2.0 * static_cast<double>(m.layers)) : 0.02};
}

Draw normal(const MatrixInfo&) { return {ParamSpec::Fill::normal, 0.02}; }

}  // namespace

const std::vector<InitDef>& all_inits() {
  static const std::vector<InitDef> inits = {
      {"auto", "xavier times the placement's own gains", "the placement's paper", true, xavier},
      {"xavier", "N(0, 2 / (fan_in + fan_out)); embeddings N(0, 1 / width)", "Glorot & Bengio 2010", false, xavier},
      {"gpt2", "N(0, 0.02^2); attention out and ffn down N(0, 0.02^2 / (2 N))", "Radford et al. 2019", false, gpt2},
      {"normal", "N(0, 0.02^2) for every matrix", "BERT, Devlin et al. 2019", false, normal},
  };
  return inits;
}

const InitDef* find_init(std::string_view name) {
  for (const InitDef& init : all_inits()) {
    if (init.name == name) return &init;
  }
  return nullptr;
}

}  // namespace normlab
