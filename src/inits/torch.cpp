// What torch.nn.Linear and torch.nn.Embedding do by themselves: kaiming_uniform_(a = sqrt(5)), whose bound is
// sqrt(6 / ((1 + 5) fan_in)) = 1 / sqrt(fan_in), the same bound for biases, and N(0, 1) for embeddings.
#include "normlab/init.h"

namespace normlab {

namespace {

Draw linear(const MatrixInfo& m) { return Draw::uniform(1 / std::sqrt(static_cast<double>(m.fan_in))); }

}  // namespace

extern const InitDef torch_init;
const InitDef torch_init = {
    .name = "torch",
    .formula = "U(-b, b), b = 1 / sqrt(fan_in), biases too; embeddings N(0, 1)",
    .source = "PyTorch, torch.nn.Linear and torch.nn.Embedding",
    .matrix = [](const MatrixInfo& m) { return m.is_embedding() ? Draw::normal(1) : linear(m); },
    .bias = linear,
};

}  // namespace normlab
