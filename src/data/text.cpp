// Any file as text. `byte`: ids are the bytes, all 256 of them, every byte kept. `char`: ids number the code points
// that occur anywhere in the file, validation part included, in code point order; the text must be UTF-8; a byte order
// mark at the start is skipped; line ends stay as they are.
#include "core/text.h"
#include "core/files.h"
#include "core/utf8.h"
#include "data/sources.h"

namespace normlab {

namespace {

constexpr std::size_t kCodePoints = 0x110000;

uint32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return uint32_t{static_cast<unsigned char>(character[i])}; };
  if (character.size() == 1) return byte(0);
  uint32_t value = byte(0) & (0x7Fu >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) value = (value << 6) | (byte(i) & 0x3Fu);
  return value;
}

SourceText by_byte(std::string_view text) {
  SourceText out;
  out.units = Units::bytes;
  out.vocabulary = 256;
  for (int value = 0; value < 256; ++value) out.spelling.emplace_back(1, static_cast<char>(value));
  out.tokens.reserve(text.size());
  for (const char c : text) out.tokens.push_back(static_cast<unsigned char>(c));
  return out;
}

// Calls visit(character) for every UTF-8 character.
template <class Visit>
void each_character(std::string_view text, const std::string& path, const Visit& visit) {
  const std::size_t start = text.substr(0, 3) == "\xEF\xBB\xBF" ? 3 : 0;
  for (std::size_t at = start; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) {
      throw DataError(str(path, ": not valid UTF-8 at byte ", at, ": ", quote(text.substr(at, 1)),
                          " (data.tokenizer = \"byte\" takes any file)"));
    }
    visit(text.substr(at, length));
    at += length;
  }
}

SourceText by_character(std::string_view text, const std::string& path) {
  SourceText out;
  std::vector<bool> occurs(kCodePoints);
  each_character(text, path, [&](std::string_view c) { occurs[code_point(c)] = true; });
  std::vector<uint16_t> id(kCodePoints);
  for (uint32_t point = 0; point < kCodePoints; ++point) {
    if (!occurs[point]) continue;
    id[point] = static_cast<uint16_t>(out.spelling.size());
    append_utf8(out.spelling.emplace_back(), point);
  }
  if (out.spelling.size() > 65535) {
    throw DataError(str(path, ": ", out.spelling.size(), " different characters, at most 65535 are supported"));
  }
  out.vocabulary = static_cast<int64_t>(out.spelling.size());
  each_character(text, path, [&](std::string_view c) { out.tokens.push_back(id[code_point(c)]); });
  return out;
}

}  // namespace

SourceText text_source(const DataConfig& config) {
  const bool bytewise = config.tokenizer == "byte";
  if (!bytewise && config.tokenizer != "char") {
    throw ConfigError(str("data.tokenizer: unknown tokenizer ", quote(config.tokenizer),
                          did_you_mean(config.tokenizer, {"char", "byte"}), "; expected char or byte"));
  }
  const std::string content = read_regular_file(config.path);
  if (content.empty()) throw DataError(str(config.path, ": the file is empty"));
  SourceText out = bytewise ? by_byte(content) : by_character(content, config.path);
  out.description = str(config.path, " by ", bytewise ? "byte" : "character");
  return out;
}

}  // namespace normlab
