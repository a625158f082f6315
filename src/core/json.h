// JSON (RFC 8259), read strictly and written with keys in the order of insertion: summary.json, the safetensors header.
//
//   Json summary = Json::object();
//   summary.set("verdict", "stable");
//   write_file_atomically(path, dump_json(summary, 2) + "\n");
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace normlab {

struct Json {
  enum class Kind { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Json() = default;
  Json(bool value) : kind(Kind::kBoolean), boolean(value) {}
  Json(double value) : kind(Kind::kNumber), number(value) {}
  template <class T>
  requires std::is_integral_v<T> Json(T value) : kind(Kind::kNumber), number(static_cast<double>(value)) {
    const auto exact = static_cast<std::int64_t>(value);
    if (std::is_signed_v<T> || exact >= 0) integer = exact;  // else above 2^63
  }
  Json(std::string value) : kind(Kind::kString), string(std::move(value)) {}
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  static Json array() { return Json(Kind::kArray); }
  static Json object() { return Json(Kind::kObject); }

  // The member of that name, or nullptr (also where this is no object).
  const Json* find(std::string_view key) const;
  // Adds a member at the end. The key must be new; parse_json checks what it reads.
  void set(std::string_view key, Json value) { members.emplace_back(key, std::move(value)); }

  Kind kind = Kind::kNull;
  bool boolean = false;
  double number = 0;  // every number, rounded to double
  std::optional<std::int64_t>
      integer;  // also the exact value, where it was written without fraction and exponent and fits
  std::string string;
  std::vector<Json> items;                            // of an array
  std::vector<std::pair<std::string, Json>> members;  // of an object, in order

 private:
  explicit Json(Kind which) : kind(which) {}
};

// The whole of `text` as one value. Refused with an IoError "NAME: byte OFFSET: what" (offset from 0): anything but RFC
// 8259, duplicate keys, invalid UTF-8, lone surrogates, numbers a double cannot hold, nesting deeper than 100.
Json parse_json(std::string_view text, std::string_view name);

// Compact on one line, or with `indent` blanks per level. Numbers in their shortest round-trip form. JSON has no word
// for non-finite numbers: they are written as null. Bytes that are not UTF-8 are written as U+FFFD.
std::string dump_json(const Json& value, int indent = 0);

}  // namespace normlab
