// UTF-8 as RFC 3629 defines it, for the readers of text formats (config/toml, core/json).
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace normlab {

// Bytes of the code point that starts at text[at], or 0 where the bytes are not UTF-8: a stray or missing continuation
// byte, an overlong form, a surrogate, a value above U+10FFFF.
inline std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const unsigned lead = byte(at), second = byte(at + 1);
  if (lead < 0x80) return at < text.size() ? 1 : 0;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  // Only the second byte has a lead-dependent range; it is what excludes overlong forms, surrogates and values above
  // U+10FFFF.
  const unsigned lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (second < lowest || second > highest) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (std::size_t i = 2; i < length; ++i)
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  return length;
}

// A code point that UTF-8 can hold: up to U+10FFFF, no surrogates.
inline bool is_code_point(std::uint32_t code) { return code <= 0x10ffff && (code < 0xd800 || code > 0xdfff); }

inline void append_utf8(std::string& out, std::uint32_t code) {
  const auto tail = [&](int shift) { out += static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    tail(6), tail(0);
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    tail(12), tail(6), tail(0);
  }
}

// Exactly `count` hexadecimal digits at text[at], as the \u escapes have them.
inline std::optional<std::uint32_t> hex_digits(std::string_view text, std::size_t at, std::size_t count) {
  if (at > text.size() || text.size() - at < count) return std::nullopt;
  std::uint32_t value = 0;
  const char* first = text.data() + at;
  const auto [end, error] = std::from_chars(first, first + count, value, 16);
  if (error != std::errc() || end != first + count) return std::nullopt;
  return value;
}

}  // namespace normlab
