// Text without locale: joining, numbers in shortest round-trip form, strict parsing, and the nearest valid name.
// (g++ 12 has no <format>; iostreams follow the locale, which has no place in files other programs read.)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace normlab {

// Shortest decimal that reads back as the same value; `nan`, `inf`, `-inf` otherwise.
std::string number(double value);
std::string number(float value);

// `value` with `digits` decimals, for people: 3.1416.
std::string fixed(double value, int digits);

// 1234567 -> "1,234,567"; for tables people read, never for files.
std::string grouped(std::int64_t value);

// Bytes as "12.3 MiB".
std::string bytes(double count);

namespace text_detail {
inline void append(std::string& out, std::string_view piece) { out += piece; }
inline void append(std::string& out, const char* piece) { out += piece; }
inline void append(std::string& out, char piece) { out += piece; }
inline void append(std::string& out, bool piece) { out += piece ? "true" : "false"; }
inline void append(std::string& out, double piece) { out += number(piece); }
inline void append(std::string& out, float piece) { out += number(piece); }
template <class T>
requires std::is_integral_v<T>
void append(std::string& out, T piece) { out += std::to_string(piece); }
}  // namespace text_detail

// All pieces joined: str("row ", 3, " of ", name).
template <class... Pieces>
std::string str(const Pieces&... pieces) {
  std::string out;
  (text_detail::append(out, pieces), ...);
  return out;
}

// The whole of `text` as a number, or nothing: no blanks, no sign tricks, no rest. Reads nan/inf in the usual
// spellings.
std::optional<double> parse_double(std::string_view text);
std::optional<std::int64_t> parse_int(std::string_view text);

std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);

// Number of insertions, deletions, replacements and neighbour swaps between two words, ignoring case.
int edit_distance(std::string_view a, std::string_view b);

// " (did you mean 'model.norm'?)" for the nearest candidate, or "" where none is near (distance above max(1,
// length/3)).
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

// `text` between single quotes with control characters and non-ASCII bytes escaped, cut to `most` characters: for
// messages.
std::string quote(std::string_view text, std::size_t most = 60);

}  // namespace normlab
