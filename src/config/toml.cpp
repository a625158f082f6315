#include "config/toml.h"

#include <algorithm>

#include "config/toml_scan.h"
#include "core/text.h"
#include "core/utf8.h"

namespace normlab {

namespace {

// Levels of arrays and inline tables, parts of a key. A guard for the stack, far above what any config needs.
constexpr std::size_t kDeepest = 100;

struct KeyPart {
  std::string name;
  Place place;
};
using KeyPath = std::vector<KeyPart>;

// The first `count` parts as one quoted dotted name: for messages.
std::string path_name(const KeyPath& path, std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(toml_key(path[i].name));
  return quote(join(names, "."), 200);
}

TomlEntry* find_entry(Toml& table, std::string_view key) {
  const auto at = table.index.find(key);
  return at == table.index.end() ? nullptr : &table.entries[at->second];
}

Toml& add_entry(Toml& table, const KeyPart& key, Toml value) {
  table.index.emplace(key.name, table.entries.size());
  table.entries.push_back({key.name, key.place, std::move(value)});
  return table.entries.back().value;
}

class TomlReader {
 public:
  TomlReader(std::string_view text, std::string_view file) : scan_(text, file) {}

  Toml document() {
    Toml root;
    root.origin = Toml::Origin::kHeader;
    Toml* table = &root;
    KeyPath section;
    for (scan_.skip_blank_lines(); !scan_.at_end(); scan_.skip_blank_lines()) {
      if (scan_.peek() == '[') {
        section = header();
        table = &open_section(root, section);
      } else {
        key_value(*table, section, 0);
      }
      scan_.skip_line_end();
    }
    return root;
  }

  Toml lone_value() {
    scan_.skip_blanks();
    Toml result = value({}, 0);
    scan_.skip_blanks();
    if (!scan_.at_end()) scan_.fail_expected("nothing after the value");
    return result;
  }

 private:
  KeyPath header() {
    if (scan_.sees("[[")) scan_.fail(scan_.place(), "arrays of tables are not supported");
    scan_.take("[");
    scan_.skip_blanks();
    KeyPath path;
    key_path(path);
    if (!scan_.take("]")) scan_.fail_expected("']' or '.' after the table name");
    return path;
  }

  // Appends the parts of a dotted key and skips the blanks after it.
  void key_path(KeyPath& path) {
    for (const std::size_t before = path.size();;) {
      if (path.size() - before == kDeepest) scan_.fail(scan_.place(), str("a key of more than ", kDeepest, " parts"));
      const Place start = scan_.place();
      path.push_back({scan_.key_part(), start});
      scan_.skip_blanks();
      if (!scan_.take(".")) return;
      scan_.skip_blanks();
    }
  }

  // key = value. `section` is the path of `table` itself, for messages.
  void key_value(Toml& table, const KeyPath& section, std::size_t depth) {
    KeyPath path = section;
    key_path(path);
    if (!scan_.take("=")) scan_.fail_expected("'=' or '.' after the key");
    scan_.skip_blanks();
    Toml read = value(path, depth + path.size() - section.size() - 1);

    Toml* inner = &table;
    for (std::size_t i = section.size(); i + 1 < path.size(); ++i)
      inner = &descend(*inner, path, i, Toml::Origin::kDotted);
    const KeyPart& last = path.back();
    if (const TomlEntry* old = find_entry(*inner, last.name)) {
      scan_.fail(last.place,
                 str("duplicate key ", path_name(path, path.size()), " (first at line ", old->place.line, ")"));
    }
    add_entry(*inner, last, std::move(read));
  }

  // The table path[i] inside `table`; made where missing. `way` says who goes there: a header (kImplicit) or a dotted
  // key (kDotted).
  Toml& descend(Toml& table, const KeyPath& path, std::size_t i, Toml::Origin way) {
    const KeyPart& part = path[i];
    TomlEntry* entry = find_entry(table, part.name);
    if (entry == nullptr) {
      Toml made;
      made.place = part.place;
      made.origin = way;
      return add_entry(table, part, std::move(made));
    }
    Toml& found = entry->value;
    const auto refuse = [&](std::string_view what) {
      scan_.fail(part.place, str(path_name(path, i + 1), " ", what, " (line ", entry->place.line, ")"));
    };
    if (found.kind != Toml::Kind::kTable) refuse(str("is ", found.kind_name(), ", not a table"));
    if (found.origin == Toml::Origin::kInline) refuse("is an inline table, to which nothing can be added");
    if (way == Toml::Origin::kDotted) {
      if (found.origin == Toml::Origin::kHeader) refuse("has its own [header], so dotted keys cannot add to it");
      found.origin = Toml::Origin::kDotted;
    }
    return found;
  }

  Toml& open_section(Toml& root, const KeyPath& path) {
    Toml* table = &root;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) table = &descend(*table, path, i, Toml::Origin::kImplicit);
    const KeyPart& last = path.back();
    if (TomlEntry* old = find_entry(*table, last.name)) {
      if (old->value.kind != Toml::Kind::kTable || old->value.origin != Toml::Origin::kImplicit) {
        scan_.fail(last.place,
                   str("table ", path_name(path, path.size()), " is already defined (line ", old->place.line, ")"));
      }
      old->place = last.place;
    }
    Toml& section = descend(*table, path, path.size() - 1, Toml::Origin::kImplicit);
    section.place = last.place;
    section.origin = Toml::Origin::kHeader;
    return section;
  }

  Toml value(const KeyPath& path, std::size_t depth) {
    if (depth >= kDeepest) scan_.fail(scan_.place(), str("nested deeper than ", kDeepest, " levels"));
    if (scan_.peek() == '[') return array(path, depth);
    if (scan_.peek() == '{') return inline_table(path, depth);
    return scan_.scalar();
  }

  Toml array(const KeyPath& path, std::size_t depth) {
    Toml result;
    result.kind = Toml::Kind::kArray;
    result.place = scan_.place();
    scan_.take("[");
    scan_.skip_blank_lines();
    while (!scan_.take("]")) {
      result.items.push_back(value(path, depth + 1));
      scan_.skip_blank_lines();
      if (!scan_.take(",") && scan_.peek() != ']') {
        scan_.fail_expected(str("',' or ']' in the array that starts at line ", result.place.line));
      }
      scan_.skip_blank_lines();
    }
    return result;
  }

  Toml inline_table(const KeyPath& path, std::size_t depth) {
    Toml result;
    result.place = scan_.place();
    result.origin = Toml::Origin::kInline;
    scan_.take("{");
    scan_.skip_blanks();
    if (scan_.take("}")) return result;
    do {
      scan_.skip_blanks();
      key_value(result, path, depth + 1);
      scan_.skip_blanks();
    } while (scan_.take(","));
    if (!scan_.take("}")) scan_.fail_expected("',' or '}' in the inline table, which must end on its line");
    return result;
  }

  TomlScan scan_;
};

}  // namespace

const Toml* Toml::find(std::string_view key) const {
  const auto at = index.find(key);
  return at == index.end() ? nullptr : &entries[at->second].value;
}

std::string_view Toml::kind_name() const {
  switch (kind) {
    case Kind::kTable: return "a table";
    case Kind::kArray: return "an array";
    case Kind::kString: return "a string";
    case Kind::kInteger: return "an integer";
    case Kind::kFloat: return "a float";
    case Kind::kBoolean: return "a boolean";
  }
  return "nothing";
}

Toml parse_toml(std::string_view text, std::string_view file) { return TomlReader(text, file).document(); }

Toml parse_toml_value(std::string_view text, std::string_view origin) { return TomlReader(text, origin).lone_value(); }

ConfigError toml_error(std::string_view file, Place place, std::string_view what) {
  return ConfigError(str(file, ":", place.line, ":", place.column, ": ", what));
}

std::string toml_string(std::string_view text) {
  static constexpr std::string_view kNames = "\"\\bfnrt", kMeanings = "\"\\\b\f\n\r\t";
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) throw ConfigError(str("not UTF-8, so it cannot be written as TOML: ", quote(text)));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (const auto which = kMeanings.find(text[at]); which != std::string_view::npos) {
      out += '\\';
      out += kNames[which];
    } else if (byte < 0x20 || byte == 0x7f) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += text.substr(at, length);
    }
    at += length;
  }
  return out + "\"";
}

std::string toml_key(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), is_bare_key_character);
  return bare ? std::string(key) : toml_string(key);
}

std::string toml_number(double value) {
  const std::string text = number(value);
  const bool reads_as_float = text.find_first_of(".en") != std::string::npos;  // "e" of 1e-06, "n" of inf and nan
  return reads_as_float ? text : text + ".0";
}

}  // namespace normlab
