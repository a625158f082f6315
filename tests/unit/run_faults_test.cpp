// What a run refuses: data without an end, models larger than memory.
#include "../test.h"
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

TEST_CASE("a model larger than the memory that is free is refused before any is taken") {
  Cost cost;
  cost.memory = 1e9;
  check_memory(cost);  // any machine that runs this has a gigabyte
  cost.memory = 1e15;
  CHECK_THROWS_AS(check_memory(cost), Error);
}
