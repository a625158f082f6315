// The characters of a TOML text, for config/toml.cpp alone: checked encoding, lines and columns, and the tokens that
// hold no other tokens (key parts, strings, numbers, booleans).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/toml.h"

namespace normlab {

class TomlScan {
 public:
  // Refuses what may stand nowhere in TOML: UTF-16, invalid UTF-8, control characters, a carriage return alone. Drops a
  // byte order mark and makes every CRLF an LF, so that the line ends of a file never change a value.
  TomlScan(std::string_view text, std::string_view file);

  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }  // NUL is refused, so it can mean the end
  bool sees(std::string_view word) const { return std::string_view(text_).substr(at_, word.size()) == word; }
  bool take(std::string_view word);
  Place place() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }

  void skip_blanks();       // blanks and tabs
  void skip_blank_lines();  // also comments and line ends
  void skip_line_end();     // blanks and a comment, then a line end or the end of the text must come

  std::string key_part();  // bare or quoted
  Toml scalar();           // string, number or boolean

  [[noreturn]] void fail(Place place, std::string_view what) const { throw toml_error(file_, place, what); }
  // "expected WHAT, found ..." at the current place.
  [[noreturn]] void fail_expected(std::string_view what) const;

 private:
  void step();  // over one byte
  void skip_comment();
  std::string string();
  std::string single_line(char mark);
  std::string multi_line(char mark);
  void escape(std::string& out, bool multi_line);
  Toml word();

  std::string text_, file_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

bool is_bare_key_character(char c);

}  // namespace normlab
