// What a run refuses: data without an end, rows that are missing where a resume needs them, models larger than memory.
#include "../process.h"
#include "../small_run.h"
#include "core/parallel.h"
#include "core/text.h"
#include "data/sources.h"
#include "lab/run.h"

using namespace normlab;

TEST_CASE("data from a device or a pipe, which may have no end, are refused") {
  for (const char* source : {"text", "tokens"}) {
    DataConfig config;
    config.path = "/dev/zero";
    try {
      std::string(source) == "text" ? text_source(config) : tokens_source(config);
      FAIL(source << " was read");
    } catch (const IoError& error) {
      CHECK(std::string(error.what()).find("/dev/zero: is no regular file") == 0);
    }
  }
}

TEST_CASE("a resume whose layers.csv lost a row is refused, and the file stays as it was") {
  const ScratchDirectory here;
  set_threads(1);
  static int steps;
  steps = 0;
  RunOptions options{.out = here.path(), .quiet = true, .stop = [] { return ++steps == 10; }};
  const RunConfig config = small_run({"probe.every=2"});
  train_run(config, options);
  const std::filesystem::path file = here / "small/layers.csv";
  std::string text = read_file(file);
  const std::size_t row = text.find("\n4,") + 1;
  text.erase(row, text.find('\n', row) + 1 - row);
  write_file_atomically(file, text);
  options.resume = true;
  try {
    train_run(config, options);
    FAIL("resumed");
  } catch (const IoError& error) {
    CHECK(std::string(error.what()) ==
          file.string() + ": has 19 rows up to step 10 of the checkpoint, not 20; --overwrite runs it again");
  }
  CHECK(read_file(file) == text);
}

TEST_CASE("a model larger than the memory that is free is refused before any is taken") {
  Cost cost;
  cost.memory = 1e9;
  check_memory(cost);  // any machine that runs this has a gigabyte
  cost.memory = 1e15;
  CHECK_THROWS_AS(check_memory(cost), Error);
}
