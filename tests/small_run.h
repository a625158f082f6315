// A run small enough for tests: 2 layers, width 16, context 8.
#pragma once

#include <string>
#include <vector>

#include "train/run_config.h"

inline constexpr const char* kSmallRun = R"(
[run]
name = "small"
[model]
layers = 2
width = 16
heads = 2
context = 8
norm = "rmsnorm"
placement = "pre"
[data]
tokens = 4000
[train]
steps = 20
batch = 4
[eval]
every = 7
batches = 2
)";

// That run with settings "section.key=value", as --set takes them.
inline normlab::RunConfig small_run(const std::vector<std::string>& sets = {}) {
  return normlab::resolve(normlab::parse_config(kSmallRun, "small.toml", sets).settings);
}

inline normlab::ModelConfig small_model(int64_t vocabulary, const std::vector<std::string>& sets = {}) {
  return normlab::model_config(small_run(sets), vocabulary);
}
