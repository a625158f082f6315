// Mutated checkpoints: whatever a file holds, the trainer is filled from it and goes on, or a typed error says why not.
#include "../mutation.h"
#include "../process.h"
#include "train/checkpoint.h"
#include "train/run_config.h"

using namespace normlab;

namespace {

Trainer& small_trainer() {
  static const RunConfig config = resolve(
      parse_config(read_file(NORMLAB_SOURCE_DIR "/tests/fuzz/small.toml"), "small.toml", {"train.optimizer=sgd"})
          .settings);
  static const Corpus corpus = load_corpus(data_config(config), config.context);
  static const Batches batches(corpus, 1, config.context);
  static Trainer trainer(model_config(config, corpus.vocabulary()), train_config(config), &batches, 1);
  return trainer;
}

CheckpointInfo about_small_run() {
  CheckpointInfo about;
  about.config = "config", about.data = "data";
  return about;
}

void read_checkpoint(const std::string& bytes) {
  const SafetensorsFile file = parse_safetensors(bytes, "c");
  load_checkpoint(file, "c", small_trainer());
  const std::int64_t before = checkpoint_info(file, "c").step;
  const std::int64_t after = small_trainer().step().step;
  CHECK(after == before + 1);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  REQUIRE(text.find(from) != std::string::npos);
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("the checkpoint reader answers any bytes with a trainer that goes on or a typed error") {
  const ScratchDirectory here;
  small_trainer().step();
  save_checkpoint(here / "c", small_trainer(), about_small_run());
  const std::string sealed = read_file(here / "c");
  // Without the checksum, which no mutation survives; equal lengths, because the header's size stands before it.
  const std::string open =
      replaced(replaced(sealed, "\"format\":\"normlab\"", "\"format\":\"foreign\""), "\"checksum\":", "\"checksun\":");
  const MutationCount count = mutate_and_read({sealed, open, open, open}, 20000, 7, read_checkpoint);
  CHECK(count.accepted > 400);
  CHECK(count.refused > 1000);
}

TEST_CASE("a checkpoint whose counters no run can reach is refused, not counted on past the largest integer") {
  const ScratchDirectory here;
  save_checkpoint(here / "c", small_trainer(), about_small_run());
  for (const char* key : {"step", "tokens"}) {
    SafetensorsFile file = read_safetensors(here / "c");
    file.metadata[key] = "9223372036854775807";
    INFO(key);
    CHECK_THROWS_AS((load_checkpoint(file, "c", small_trainer()), small_trainer().step()), IoError);
  }
}

TEST_CASE("a summary whose number of steps is no integer is refused when its run is resumed") {
  const ScratchDirectory here;
  const std::vector<std::string> run = {"run", NORMLAB_SOURCE_DIR "/tests/fuzz/small.toml", "--out",
                                        here.path().string()};
  REQUIRE(run_tool(run).code == 0);
  const std::string summary = read_file(here / "small/summary.json");
  here.write("small/summary.json", replaced(summary, "\"steps\": 3", "\"steps\": 1e30"));
  std::vector<std::string> again = run;
  again.push_back("--resume");
  const ProcessResult r = run_tool(again);
  CHECK(r.code == 1);
  CHECK(r.err.find("has 3 rows, but summary.json tells of 0 steps") != std::string::npos);
}
