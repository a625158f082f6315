// Checkpoints: weights, optimizer state and counters in one safetensors file. Random numbers are counter-based, so seed
// and step are their whole state.
#pragma once

#include <filesystem>
#include <string>

#include "train/safetensors.h"
#include "train/trainer.h"

namespace normlab {

struct CheckpointInfo {
  int64_t step = 0;
  int64_t tokens = 0;
  std::string config;   // the resolved config, as TOML
  std::string data;     // digest of the corpus
  std::string kernels;  // name of the kernel set
  std::string metrics;  // digest of the rows of metrics.csv up to the step
  std::string layers;   // the same of layers.csv
};

// Step, tokens and kernels are those of the trainer, whatever `about` says.
void save_checkpoint(const std::filesystem::path& path, Trainer& trainer, const CheckpointInfo& about);

// What a checkpoint says of itself, and the whole file for loading.
CheckpointInfo checkpoint_info(const SafetensorsFile& file, const std::string& path);

// Fills the trainer. A file without optimizer state (an export) is refused: a run cannot go on from it.
void load_checkpoint(const SafetensorsFile& file, const std::string& path, Trainer& trainer);

// Weights and states only: for sampling and export.
void load_weights(const SafetensorsFile& file, const std::string& path, ParamStore& store);
void save_weights(const std::filesystem::path& path, const ParamStore& store, const std::string& config);

}  // namespace normlab
