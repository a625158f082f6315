// normlab probe.
#include <algorithm>
#include <charconv>
#include <filesystem>

#include "app/commands.h"
#include "core/files.h"
#include "core/text.h"
#include "lab/probe.h"
#include "lab/progress.h"
#include "lab/run.h"
#include "normlab/error.h"
#include "train/initialize.h"

namespace normlab {

namespace {

constexpr std::size_t kWidth = 12;

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string cell(const std::optional<double>& value) {
  if (!value) return right("", kWidth);
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, *value, std::chars_format::general, 4).ptr;
  return right(std::string(text, end), kWidth);
}

}  // namespace

int command_probe(const Arguments& a) {
  use_threads(a);
  const RunConfig config = config_of(a);
  const std::filesystem::path directory = std::filesystem::path(a.text("--out", "runs")) / (config.name + "-probe");
  const std::filesystem::path file = directory / "layers.csv";
  if (std::filesystem::exists(directory / "metrics.csv"))
    throw UsageError(str(directory.string(), " holds a run; choose another --out or run.name"));
  refuse_overwriting({file}, {a.positional[0], config.data.path});
  const Corpus corpus = load_corpus(data_config(config), config.context);
  const ModelConfig model = model_config(config, corpus.vocabulary());
  for (const std::string& text : warnings(config, model)) message("warning", text.c_str());
  const auto seed = static_cast<uint64_t>(config.seed);
  ParamStore store;
  Probe probe(model, store, corpus, seed, Probe::sequences_for(model, config.batch));
  Cost cost;
  cost.memory = probe.memory();
  check_memory(cost);
  store.allocate();
  const Batches batches(corpus, seed, config.context);
  initialize(model, store, seed, &batches, config.batch, config.batch / config.accumulate);

  std::string csv = kLayersHeader;
  print("layer sublayer ");
  for (const char* name : {"stream_rms", "branch_rms", "stream_grad", "grad_in", "grad_out", "entropy", "similarity"})
    print(right(name, kWidth));
  print("\n");
  for (const ProbeRow& row : probe.measure()) {
    csv += layers_row(0, row);
    print(right(std::to_string(row.layer), 5) + " " + row.sublayer + (row.sublayer == "ffn" ? "       " : " "));
    for (const std::optional<double>& value :
         {std::optional(row.stream_rms), std::optional(row.branch_rms), std::optional(row.stream_grad),
          std::optional(row.grad_in), std::optional(row.grad_out), row.attention_entropy,
          std::optional(row.token_similarity)})
      print(cell(value));
    print("\n");
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) throw IoError(str(directory.string(), ": cannot create directory: ", error.message()));
  write_file_atomically(file, csv);
  print(str("file: ", file.string(), "\n"));
  return 0;
}

}  // namespace normlab
