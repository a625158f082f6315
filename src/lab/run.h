// One training run in its directory: files, checkpoints, resume, progress, verdict.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lab/verdict.h"
#include "train/checkpoint.h"
#include "train/run_config.h"

namespace normlab {

struct RunOptions {
  std::filesystem::path out = "runs";
  bool resume = false;
  bool overwrite = false;
  bool quiet = false;        // no progress and no messages
  bool (*stop)() = nullptr;  // asked after every step; true = write a checkpoint and stop
};

struct RunOutcome {
  std::filesystem::path directory;
  Verdict verdict;
  int64_t steps = 0;
  double first_loss = 0, best_loss = 0, final_loss = 0;
  bool already_done = false;  // a resume of a finished run: nothing was computed
};

// Trains. Nothing is written before the configuration, the data and the memory have been checked.
RunOutcome train_run(const RunConfig& config, const RunOptions& options);

// A run directory's checkpoint and its configuration: for sampling and export.
struct TrainedRun {
  RunConfig config;
  SafetensorsFile file;
  std::string path;
};
TrainedRun load_trained_run(const std::filesystem::path& directory);

// What a person should know before training: settings without effect, norms that see the future, gains of an init.
std::vector<std::string> warnings(const RunConfig& config, const ModelConfig& model);

// Refuses a model that this machine's memory cannot hold, before any is taken.
void check_memory(const Cost& cost);

// The files of a run directory: all that a run writes, and what --overwrite replaces.
inline constexpr const char* kRunFiles[] = {
    "config.toml", "metrics.csv", "timing.csv", "summary.json", "checkpoint.safetensors", "layers.csv"};

extern const char kVersion[];

}  // namespace normlab
