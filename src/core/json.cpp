#include "core/json.h"

#include <cmath>
#include <set>

#include "core/text.h"
#include "core/utf8.h"
#include "normlab/error.h"

namespace normlab {

namespace {

constexpr int kDeepest = 100;  // far above any header or summary, far below what a stack of 8 MiB holds

class JsonReader {
 public:
  JsonReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Json document() {
    Json value = read(0);
    skip_blanks();
    if (at_ < text_.size()) fail_expected("nothing after the value");
    return value;
  }

 private:
  [[noreturn]] void fail(std::size_t at, std::string_view what) const {
    throw IoError(str(name_, ": byte ", at, ": ", what));
  }

  [[noreturn]] void fail_expected(std::string_view what) const {
    const std::string found = at_ < text_.size() ? quote(text_.substr(at_, 1)) : std::string("the end");
    fail(at_, str("expected ", what, ", found ", found));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void skip_blanks() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r') ++at_;
  }

  Json read(int depth) {
    if (depth > kDeepest) fail(at_, str("nested deeper than ", kDeepest, " levels"));
    skip_blanks();
    if (peek() == '{') return object(depth);
    if (peek() == '[') return array(depth);
    if (peek() == '"') return string();
    if (peek() == '-' || is_digit()) return number();
    if (take("true")) return true;
    if (take("false")) return false;
    if (take("null")) return {};
    fail_expected("a value");
  }

  Json object(int depth) {
    Json result = Json::object();
    std::set<std::string, std::less<>> seen;
    ++at_;
    skip_blanks();
    if (take("}")) return result;
    do {
      skip_blanks();
      const std::size_t start = at_;
      if (peek() != '"') fail_expected("a key in double quotes");
      const std::string key = string();
      if (!seen.insert(key).second) fail(start, str("duplicate key ", quote(key)));
      skip_blanks();
      if (!take(":")) fail_expected("':' after the key");
      result.set(key, read(depth + 1));
      skip_blanks();
    } while (take(","));
    if (!take("}")) fail_expected("',' or '}'");
    return result;
  }

  Json array(int depth) {
    Json result = Json::array();
    ++at_;
    skip_blanks();
    if (take("]")) return result;
    do {
      result.items.push_back(read(depth + 1));
      skip_blanks();
    } while (take(","));
    if (!take("]")) fail_expected("',' or ']'");
    return result;
  }

  std::string string() {
    const std::size_t start = at_++;
    std::string out;
    while (!take("\"")) {
      if (at_ >= text_.size()) fail(start, "this string has no end");
      if (peek() == '\\') {
        escape(out);
        continue;
      }
      const std::size_t length = utf8_length(text_, at_);
      if (length == 0) fail(at_, str("invalid UTF-8: byte ", quote(text_.substr(at_, 1))));
      if (static_cast<unsigned char>(peek()) < 0x20) fail_expected("no control character in a string");
      out += text_.substr(at_, length);
      at_ += length;
    }
    return out;
  }

  void escape(std::string& out) {
    static constexpr std::string_view kNames = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t start = at_++;
    const auto which = kNames.find(peek());
    if (at_ < text_.size() && which != std::string_view::npos) {
      out += kMeanings[which];
      ++at_;
      return;
    }
    std::uint32_t code = code_unit(start);
    // Code points above U+FFFF are a pair of units, D800..DBFF then DC00..DFFF, of ten bits each (RFC 8259, section 7).
    if (code >= 0xd800 && code < 0xdc00) {
      if (peek() != '\\') fail(start, "half of a surrogate pair");
      ++at_;
      const std::uint32_t low = code_unit(start);
      if (low < 0xdc00 || low > 0xdfff) fail(start, "half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (!is_code_point(code)) fail(start, "half of a surrogate pair");
    append_utf8(out, code);
  }

  std::uint32_t code_unit(std::size_t start) {
    const auto digits = peek() == 'u' ? hex_digits(text_, at_ + 1, 4) : std::nullopt;
    if (!digits) fail(start, R"(invalid escape: one of \" \\ \/ \b \f \n \r \t \uXXXX is expected)");
    at_ += 5;
    return *digits;
  }

  bool is_digit() const { return peek() >= '0' && peek() <= '9'; }

  void digits() {
    if (!is_digit()) fail_expected("a digit");
    while (is_digit()) ++at_;
  }

  Json number() {
    const std::size_t start = at_;
    take("-");
    if (!take("0")) digits();
    if (is_digit()) fail(start, "a number must not start with 0");
    const std::size_t whole = at_;
    if (take(".")) digits();
    if (take("e") || take("E")) {
      if (!take("+")) take("-");
      digits();
    }
    const std::string_view written = text_.substr(start, at_ - start);
    const auto value = parse_double(written);
    if (!value) fail(start, str("number ", quote(written), " is outside the range of a double"));
    Json result = *value;
    // An integer has no negative zero, a double has.
    if (at_ == whole && written != "-0") result.integer = parse_int(written);
    return result;
  }

  std::string_view text_, name_;
  std::size_t at_ = 0;
};

void write_string(std::string& out, std::string_view text) {
  static constexpr std::string_view kNames = "\"\\bfnrt", kMeanings = "\"\\\b\f\n\r\t";
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_length(text, 0);
    const auto which = kMeanings.find(text[0]);
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (which != std::string_view::npos) {
      out += '\\';
      out += kNames[which];
    } else if (static_cast<unsigned char>(text[0]) < 0x20) {
      out += text[0] < 0x10 ? "\\u000" : "\\u001";
      out += kHex[text[0] & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void write(std::string& out, const Json& value, int indent, int level) {
  const auto new_line = [&](int depth) {
    if (indent > 0) out += "\n" + std::string(static_cast<std::size_t>(indent * depth), ' ');
  };
  const auto next = [&](bool first) {
    if (!first) out += ',';
    new_line(level + 1);
  };
  switch (value.kind) {
    case Json::Kind::kNull: out += "null"; return;
    case Json::Kind::kBoolean: out += value.boolean ? "true" : "false"; return;
    case Json::Kind::kNumber:
      out += value.integer ? str(*value.integer) : std::isfinite(value.number) ? number(value.number) : "null";
      return;
    case Json::Kind::kString: write_string(out, value.string); return;
    case Json::Kind::kArray:
      out += '[';
      for (const Json& item : value.items) {
        next(&item == &value.items.front());
        write(out, item, indent, level + 1);
      }
      if (!value.items.empty()) new_line(level);
      out += ']';
      return;
    case Json::Kind::kObject:
      out += '{';
      for (const auto& member : value.members) {
        next(&member == &value.members.front());
        write_string(out, member.first);
        out += indent > 0 ? ": " : ":";
        write(out, member.second, indent, level + 1);
      }
      if (!value.members.empty()) new_line(level);
      out += '}';
      return;
  }
}

}  // namespace

const Json* Json::find(std::string_view key) const {
  for (const auto& member : members)
    if (member.first == key) return &member.second;
  return nullptr;
}

Json parse_json(std::string_view text, std::string_view name) { return JsonReader(text, name).document(); }

std::string dump_json(const Json& value, int indent) {
  std::string out;
  write(out, value, indent, 0);
  return out;
}

}  // namespace normlab
