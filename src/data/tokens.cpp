// Ids made by another tool, as little-endian uint16. Two forms: nothing but ids (nanoGPT's train.bin), or 256 int32
// before them with magic 20240520, version 1 and the number of ids (llm.c, dev/data/data_common.py). The vocabulary is
// the largest id + 1.
#include <algorithm>

#include "core/files.h"
#include "core/text.h"
#include "data/sources.h"

namespace normlab {

namespace {

constexpr int64_t kMagic = 20240520;
constexpr int64_t kEvaluationMagic = 20240522;  // llm.c's multiple-choice files: records, not a text
constexpr int64_t kWideMagic = 20240801;        // llm.c's uint32 ids
constexpr std::size_t kHeaderBytes = 1024;

// `bytes` little-endian bytes at `at`; 0 beyond the end.
int64_t little_endian(std::string_view data, std::size_t at, std::size_t bytes) {
  uint64_t value = 0;
  for (std::size_t i = 0; i < bytes && at + i < data.size(); ++i) {
    value |= uint64_t{static_cast<unsigned char>(data[at + i])} << (8 * i);
  }
  return static_cast<int64_t>(value);
}

// Where the ids begin: after the header, whose fields must agree with the size of the file.
std::size_t header_size(std::string_view data, const std::string& path) {
  const int64_t magic = little_endian(data, 0, 4);
  if (magic == kEvaluationMagic || magic == kWideMagic) {
    throw DataError(
        str(path, ": llm.c file with magic ", magic, "; only uint16 ids, magic ", kMagic, ", are supported"));
  }
  if (magic != kMagic) return 0;
  const int64_t version = little_endian(data, 4, 4), count = little_endian(data, 8, 4);
  if (version != 1) throw DataError(str(path, ": llm.c header of version ", version, ", expected 1"));
  const int64_t expected = static_cast<int64_t>(kHeaderBytes) + 2 * count;
  if (static_cast<int64_t>(data.size()) != expected) {
    throw DataError(
        str(path, ": the header promises ", count, " tokens, so ", expected, " bytes; the file has ", data.size()));
  }
  return kHeaderBytes;
}

}  // namespace

SourceText tokens_source(const DataConfig& config) {
  const std::string data = read_regular_file(config.path);
  const std::size_t start = header_size(data, config.path);
  if (data.size() == start) throw DataError(str(config.path, ": the file has no tokens"));
  if (data.size() % 2 != 0)
    throw DataError(str(config.path, ": ", data.size(), " bytes, not a whole number of uint16 tokens"));
  SourceText out;
  out.units = Units::numbers;
  out.tokens.reserve((data.size() - start) / 2);
  for (std::size_t at = start; at < data.size(); at += 2) {
    out.tokens.push_back(static_cast<uint16_t>(little_endian(data, at, 2)));
  }
  out.vocabulary = 1 + int64_t{*std::max_element(out.tokens.begin(), out.tokens.end())};
  out.description = str(config.path, start > 0 ? " (llm.c tokens)" : " (raw uint16 tokens)");
  return out;
}

}  // namespace normlab
