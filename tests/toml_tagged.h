// A TOML value in the form the public toml-test suite compares: {"type": "integer", "value": "42"}, tables and arrays
// as they are.
#pragma once

#include "config/toml.h"
#include "core/json.h"
#include "core/text.h"

inline normlab::Json toml_tagged(const normlab::Toml& value) {
  using normlab::Json;
  using Kind = normlab::Toml::Kind;
  const auto leaf = [](const char* type, const std::string& text) {
    Json tagged = Json::object();
    tagged.set("type", type);
    tagged.set("value", text);
    return tagged;
  };
  switch (value.kind) {
    case Kind::kString: return leaf("string", value.string);
    case Kind::kInteger: return leaf("integer", normlab::str(value.integer));
    case Kind::kFloat: return leaf("float", normlab::number(value.number));
    case Kind::kBoolean: return leaf("bool", value.boolean ? "true" : "false");
    case Kind::kArray: {
      Json array = Json::array();
      for (const normlab::Toml& item : value.items) array.items.push_back(toml_tagged(item));
      return array;
    }
    case Kind::kTable: break;
  }
  Json table = Json::object();
  for (const normlab::TomlEntry& entry : value.entries) table.set(entry.key, toml_tagged(entry.value));
  return table;
}
