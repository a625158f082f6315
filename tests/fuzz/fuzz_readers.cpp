// Whatever the bytes, a reader gives a value or a typed Error; anything else is a crash that libFuzzer keeps.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "config/toml.h"
#include "core/files.h"
#include "core/json.h"
#include "normlab/error.h"
#include "report/csv.h"
#include "train/checkpoint.h"
#include "train/run_config.h"

namespace {

using namespace normlab;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

[[maybe_unused]] void read_toml(std::string_view text) {
  parse_toml(text, "fuzz.toml");
  const std::string written = dump(resolve(parse_config(text, "fuzz.toml", {}).settings));
  require(dump(resolve(parse_config(written, "again", {}).settings)) == written);
}

[[maybe_unused]] void read_csv(std::string_view text) {
  const CsvTable table = parse_csv(text, "fuzz.csv");
  for (const std::string& column : table.columns) {
    try {
      table.numbers(column);
    } catch (const Error&) {  // not a number; the next column may still be
    }
  }
  const std::string kept = cut_rows_after(std::string(text), 2, "fuzz.csv");
  require(cut_rows_after(kept, 2, "fuzz.csv") == kept);
}

[[maybe_unused]] void read_json(std::string_view text) {
  const std::string written = dump_json(parse_json(text, "fuzz.json"));
  require(dump_json(parse_json(written, "again")) == written);
}

[[maybe_unused]] void read_safetensors(std::string_view text) { parse_safetensors(text, "fuzz.safetensors"); }

// Into the trainer of small.toml, which then must be able to go on.
[[maybe_unused]] void read_checkpoint(std::string_view text) {
  static const RunConfig config =
      resolve(parse_config(read_file(NORMLAB_SOURCE_DIR "/tests/fuzz/small.toml"), "small.toml", {}).settings);
  static const Corpus corpus = load_corpus(data_config(config), config.context);
  static const Batches batches(corpus, 1, config.context);
  static Trainer trainer(model_config(config, corpus.vocabulary()), train_config(config), &batches, 1);
  load_checkpoint(parse_safetensors(text, "fuzz.safetensors"), "fuzz.safetensors", trainer);
  trainer.step();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    NORMLAB_FUZZ_READER(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const normlab::Error&) {
  }
  return 0;
}
