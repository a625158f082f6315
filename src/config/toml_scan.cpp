#include "config/toml_scan.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "core/utf8.h"

namespace normlab {

namespace {

bool is_digit(char c, int base = 10) {  // base 2, 8, 10, 16
  if (base <= 10) return c >= '0' && c < '0' + base;
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_word_character(char c) { return is_bare_key_character(c) || c == '+' || c == '.' || c == ':'; }

// 1979-05-27..., 07:32:00...
bool looks_like_time(std::string_view word) {
  std::size_t digits = 0;
  while (digits < word.size() && is_digit(word[digits])) ++digits;
  return digits < word.size() && ((digits == 4 && word[4] == '-') || (digits == 2 && word[2] == ':'));
}

bool take_prefix(std::string_view& rest, std::string_view prefix) {
  if (rest.substr(0, prefix.size()) != prefix) return false;
  rest.remove_prefix(prefix.size());
  return true;
}

Toml make_float(double value) {
  Toml result;
  result.kind = Toml::Kind::kFloat;
  result.number = value;
  return result;
}

// A number without its underscores, and what is wrong with it (nullptr: nothing is).
struct Number {
  std::string digits;
  int base = 10;
  bool is_float = false;
  const char* why = nullptr;
};

Number take_apart(std::string_view word) {
  Number n;
  std::string_view rest = word;
  if (!take_prefix(rest, "+") && take_prefix(rest, "-")) n.digits = "-";
  if (take_prefix(rest, "0x")) {
    n.base = 16;
  } else if (take_prefix(rest, "0o")) {
    n.base = 8;
  } else if (take_prefix(rest, "0b")) {
    n.base = 2;
  }
  std::string plain;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    if (rest[i] != '_') {
      plain += rest[i];
    } else if (i == 0 || i + 1 == rest.size() || !is_digit(rest[i - 1], n.base) || !is_digit(rest[i + 1], n.base)) {
      n.why = "an underscore must stand between two digits";
      return n;
    }
  }
  rest = plain;
  const auto digits = [&](const char* why_none) {
    if (n.why == nullptr && (rest.empty() || !is_digit(rest[0], n.base))) n.why = why_none;
    for (; n.why == nullptr && !rest.empty() && is_digit(rest[0], n.base); rest.remove_prefix(1)) n.digits += rest[0];
  };
  if (n.base == 10 && rest.size() > 1 && rest[0] == '0' && is_digit(rest[1])) n.why = "no leading zeros";
  digits(rest.substr(0, 1) == "." ? "a digit must stand before the point" : "digits are missing");
  if (n.base == 10 && take_prefix(rest, ".")) {
    n.is_float = true;
    n.digits += '.';
    digits("a digit must follow the point");
  }
  if (n.base == 10 && (take_prefix(rest, "e") || take_prefix(rest, "E"))) {
    n.is_float = true;
    n.digits += 'e';
    if (!take_prefix(rest, "+") && take_prefix(rest, "-")) n.digits += '-';
    digits("the exponent needs digits");
  }
  if (n.why == nullptr && !rest.empty()) n.why = "only digits may follow";
  if (n.base != 10 && word[0] != '0') n.why = "only decimals take a sign";
  return n;
}

}  // namespace

bool is_bare_key_character(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

TomlScan::TomlScan(std::string_view text, std::string_view file) : file_(file) {
  const std::string_view start = text.substr(0, 2);
  if (start == "\xff\xfe" || start == "\xfe\xff" || (start.size() == 2 && (start[0] == '\0') != (start[1] == '\0')))
    fail({}, "this looks like UTF-16; save the file as UTF-8");
  take_prefix(text, "\xef\xbb\xbf");
  std::size_t at = 0, line_start = 0;
  int line = 1;
  while (at < text.size()) {
    const Place here{line, static_cast<int>(at - line_start) + 1};
    const std::size_t length = utf8_length(text, at);
    const std::string_view character = text.substr(at, length);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0) fail(here, str("invalid UTF-8: byte ", quote(text.substr(at, 1))));
    at += length;
    if (character == "\r") {
      if (at == text.size() || text[at] != '\n') fail(here, "a carriage return without a line feed after it");
      continue;
    }
    if ((byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f)
      fail(here, str("control character ", quote(character), " is not allowed"));
    if (byte == '\n') line_start = at, ++line;
    text_ += character;
  }
}

void TomlScan::step() {
  if (text_[at_++] == '\n') line_start_ = at_, ++line_;
}

bool TomlScan::take(std::string_view word) {
  if (!sees(word)) return false;
  for (std::size_t i = 0; i < word.size(); ++i) step();
  return true;
}

void TomlScan::fail_expected(std::string_view what) const {
  std::string found = "the end of the file";
  if (peek() == '\n') found = "the end of the line";
  if (!at_end() && peek() != '\n') found = quote(std::string_view(text_).substr(at_, utf8_length(text_, at_)));
  fail(place(), str("expected ", what, ", found ", found));
}

void TomlScan::skip_blanks() {
  while (peek() == ' ' || peek() == '\t') step();
}

void TomlScan::skip_comment() {
  skip_blanks();
  if (peek() != '#') return;
  while (!at_end() && peek() != '\n') step();
}

void TomlScan::skip_blank_lines() {
  do skip_comment();
  while (take("\n"));
}

void TomlScan::skip_line_end() {
  skip_comment();
  if (!at_end() && !take("\n")) fail_expected("the end of the line");
}

std::string TomlScan::key_part() {
  if (sees("\"\"\"") || sees("'''")) fail(place(), "a key must not be a multi-line string");
  if (peek() == '"' || peek() == '\'') return single_line(peek());
  std::string key;
  for (; is_bare_key_character(peek()); step()) key += peek();
  if (key.empty()) fail_expected("a key");
  return key;
}

Toml TomlScan::scalar() {
  const Place start = place();
  Toml value;
  if (peek() == '"' || peek() == '\'') {
    value.kind = Toml::Kind::kString;
    value.string = string();
  } else {
    value = word();
  }
  value.place = start;
  return value;
}

std::string TomlScan::string() {
  const char mark = peek();
  return sees(std::string(3, mark)) ? multi_line(mark) : single_line(mark);
}

std::string TomlScan::single_line(char mark) {
  const Place start = place();
  std::string out;
  step();
  while (peek() != mark) {
    if (at_end() || peek() == '\n') fail(start, str("this string has no closing ", mark, " on its line"));
    if (peek() == '\\' && mark == '"') {
      escape(out, false);
    } else {
      out += peek();
      step();
    }
  }
  step();
  return out;
}

std::string TomlScan::multi_line(char mark) {
  const Place start = place();
  const std::string fence(3, mark);
  std::string out;
  take(fence);
  take("\n");  // a line end right after the opening is not part of the string
  while (!take(fence)) {
    if (at_end()) fail(start, str("this string has no closing ", fence));
    if (peek() == '\\' && mark == '"') {
      escape(out, true);
    } else {
      out += peek();
      step();
    }
  }
  // Up to two quotes may stand right before the closing three.
  for (int extra = 0; extra < 2 && peek() == mark; ++extra) {
    out += mark;
    step();
  }
  return out;
}

void TomlScan::escape(std::string& out, bool multi_line) {
  static constexpr std::string_view kNames = "\"\\bfnrt", kMeanings = "\"\\\b\f\n\r\t";
  const Place start = place();
  step();
  const char name = peek();
  if (name == 'u' || name == 'U') {
    const std::size_t count = name == 'u' ? 4 : 8;
    const auto code = hex_digits(text_, at_ + 1, count);
    if (!code) fail(start, str("escape \\", name, " needs ", count, " hexadecimal digits"));
    if (!is_code_point(*code)) fail(start, "this escape is not a Unicode code point (surrogates are not either)");
    append_utf8(out, *code);
    for (std::size_t i = 0; i <= count; ++i) step();
    return;
  }
  if (const auto which = kNames.find(name); which != std::string_view::npos) {
    out += kMeanings[which];
    step();
    return;
  }
  // In multi-line strings a backslash at the end of a line removes that line end and all blanks up to the next
  // character.
  if (multi_line) skip_blanks();
  if (!multi_line || peek() != '\n')
    fail(start, "invalid escape: one of \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX is expected");
  while (peek() == ' ' || peek() == '\t' || peek() == '\n') step();
}

Toml TomlScan::word() {
  const Place start = place();
  std::string text;
  for (; is_word_character(peek()); step()) text += peek();
  if (text.empty()) fail_expected("a value");
  if (text == "true" || text == "false") {
    Toml value;
    value.kind = Toml::Kind::kBoolean;
    value.boolean = text == "true";
    return value;
  }
  const char sign = text[0];
  const std::string_view unsigned_text = std::string_view(text).substr(sign == '+' || sign == '-' ? 1 : 0);
  if (unsigned_text == "inf") return make_float(sign == '-' ? -HUGE_VAL : HUGE_VAL);
  if (unsigned_text == "nan") return make_float(std::numeric_limits<double>::quiet_NaN());
  if (looks_like_time(text)) fail(start, "date-times, dates and times are not supported; write a string");
  if (unsigned_text.empty() || !(is_digit(unsigned_text[0]) || unsigned_text[0] == '.' || unsigned_text[0] == '_')) {
    const std::string small = lower(text);
    fail(start, str("expected a value, found ", quote(text),
                    small == "true" || small == "false" ? "; booleans are true and false" : "; strings need quotes"));
  }

  const Number parts = take_apart(text);
  if (parts.why != nullptr) fail(start, str(quote(text), " is not a number: ", parts.why));
  if (parts.is_float) {
    const auto value = parse_double(parts.digits);
    if (!value) fail(start, str(quote(text), " is outside the range of a 64-bit float"));
    return make_float(*value);
  }
  Toml value;
  value.kind = Toml::Kind::kInteger;
  const char* end = parts.digits.data() + parts.digits.size();
  if (std::from_chars(parts.digits.data(), end, value.integer, parts.base).ec != std::errc()) {
    fail(start, str(quote(text), " is outside the range of integers, ", std::numeric_limits<std::int64_t>::min(),
                    " to ", std::numeric_limits<std::int64_t>::max()));
  }
  value.number = static_cast<double>(value.integer);
  return value;
}

}  // namespace normlab
