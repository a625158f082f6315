// TOML 1.0 (https://toml.io/en/v1.0.0), read strictly, less what a config here never needs: dates and times, and arrays
// of tables ([[name]]), which are refused by name. Knows nothing about models: names and ranges are the business of the
// field list.
//
// Every error is a ConfigError "FILE:LINE:COLUMN: what". Lines and columns count from 1, columns in bytes (as g++
// does), a byte order mark not counted.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/error.h"

namespace normlab {

struct Place {
  int line = 1;
  int column = 1;
};

struct TomlEntry;

struct Toml {
  enum class Kind { kTable, kArray, kString, kInteger, kFloat, kBoolean };
  // How a table came to be; decides what may still extend it. kImplicit: named only on the way to a deeper [header].
  enum class Origin { kImplicit, kHeader, kDotted, kInline };

  // The entry's value under that one key (dots are not split), or nullptr.
  const Toml* find(std::string_view key) const;
  // "a table", "an integer" ...: for messages.
  std::string_view kind_name() const;

  Kind kind = Kind::kTable;
  Place place;  // first character of the value; of the key, for tables that are not inline
  std::string string;
  std::int64_t integer = 0;
  double number = 0;  // of a kFloat; of a kInteger rounded to double, for settings that take either
  bool boolean = false;
  std::vector<Toml> items;                                // of an array
  std::vector<TomlEntry> entries;                         // of a table, in the order of the file
  std::map<std::string, std::size_t, std::less<>> index;  // of a table: key -> its place among the entries
  Origin origin = Origin::kImplicit;
};

struct TomlEntry {
  std::string key;
  Place place;  // of the key
  Toml value;
};

// The root table of `text`. `file` is only the name in messages.
Toml parse_toml(std::string_view text, std::string_view file);

// One value and nothing after it, as in `--set section.key=VALUE`; `origin` takes the file's place in messages.
Toml parse_toml_value(std::string_view text, std::string_view origin);

// "FILE:LINE:COLUMN: what", for what is found wrong after parsing.
ConfigError toml_error(std::string_view file, Place place, std::string_view what);

// Writers; what they return reads back as the same value.
std::string toml_string(std::string_view text);  // in double quotes, escaped; ConfigError where it is not UTF-8
std::string toml_key(std::string_view key);      // bare where possible, else as toml_string
std::string toml_number(double value);           // always a float: 1.0, 1e-06, inf, nan

}  // namespace normlab
