// Whatever the bytes, a reader gives a value or a typed Error; anything else is a crash that libFuzzer keeps.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "config/toml.h"
#include "normlab/error.h"
#include "report/csv.h"
#include "train/safetensors.h"

namespace {

[[maybe_unused]] void read_toml(std::string_view text) { normlab::parse_toml(text, "fuzz.toml"); }

[[maybe_unused]] void read_csv(std::string_view text) {
  const normlab::CsvTable table = normlab::parse_csv(text, "fuzz.csv");
  for (const std::string& column : table.columns) table.numbers(column);
}

[[maybe_unused]] void read_safetensors(std::string_view text) { normlab::parse_safetensors(text, "fuzz.safetensors"); }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    NORMLAB_FUZZ_READER(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const normlab::Error&) {
  }
  return 0;
}
