#include "core/json.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <locale>

#include "../test.h"
#include "core/utf8.h"
#include "normlab/error.h"

using namespace normlab;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "f.json");
  } catch (const IoError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a JSON text is read into values with keys in the order of the text") {
  const Json json = parse_json(" {\"z\": [1, -2.5e-1, true, false, null], \"a\": {\"s\": \"x\"}}\r\n\t", "f.json");
  REQUIRE(json.kind == Json::Kind::kObject);
  REQUIRE(json.members.size() == 2);
  CHECK(json.members[0].first == "z");
  CHECK(json.members[1].first == "a");
  const Json& z = *json.find("z");
  REQUIRE(z.items.size() == 5);
  CHECK(z.items[0].integer == 1);
  CHECK(z.items[1].number == -0.25);
  CHECK_FALSE(z.items[1].integer.has_value());
  CHECK(z.items[2].kind == Json::Kind::kBoolean);
  CHECK(z.items[2].boolean);
  CHECK_FALSE(z.items[3].boolean);
  CHECK(z.items[4].kind == Json::Kind::kNull);
  CHECK(json.find("a")->find("s")->string == "x");
  CHECK(json.find("s") == nullptr);
}

TEST_CASE("JSON integers are exact up to 64 bits and doubles beyond") {
  const auto number_of = [](const char* text) { return parse_json(text, "n"); };
  CHECK(number_of("9223372036854775807").integer == std::numeric_limits<std::int64_t>::max());
  CHECK(number_of("-9223372036854775808").integer == std::numeric_limits<std::int64_t>::min());
  CHECK(number_of("9007199254740993").integer == 9007199254740993);  // 2^53 + 1, which no double holds
  CHECK_FALSE(number_of("9223372036854775808").integer.has_value());
  CHECK(number_of("9223372036854775808").number == 0x1p63);
  CHECK_FALSE(number_of("1.0").integer.has_value());
  CHECK_FALSE(number_of("1e3").integer.has_value());
  CHECK(number_of("1e3").number == 1000.0);
  CHECK(std::signbit(number_of("-0").number));
  CHECK(dump_json(number_of("-0")) == "-0");
  CHECK(number_of("5e-324").number == std::numeric_limits<double>::denorm_min());
  CHECK(Json(std::numeric_limits<std::uint64_t>::max()).number == 0x1p64);
  CHECK_FALSE(Json(std::numeric_limits<std::uint64_t>::max()).integer.has_value());
}

TEST_CASE("JSON escapes are decoded, surrogate pairs included") {
  CHECK(parse_json(R"("\"\\\/\b\f\n\r\t")", "s").string == "\"\\/\b\f\n\r\t");
  CHECK(parse_json(R"("\u0041\u00e9\u20AC\ud83d\ude00")", "s").string == "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  CHECK(parse_json(R"("\u0000")", "s").string == std::string(1, '\0'));
  CHECK(parse_json("\"\xf0\x9f\x98\x80\"", "s").string == "\xf0\x9f\x98\x80");
}

TEST_CASE("JSON errors name the byte and what was expected") {
  CHECK(refusal("") == "f.json: byte 0: expected a value, found the end");
  CHECK(refusal("[1,]") == "f.json: byte 3: expected a value, found ']'");
  CHECK(refusal("[1 2]") == "f.json: byte 3: expected ',' or ']', found '2'");
  CHECK(refusal("{\"a\":1,}") == "f.json: byte 7: expected a key in double quotes, found '}'");
  CHECK(refusal("{\"a\":1") == "f.json: byte 6: expected ',' or '}', found the end");
  CHECK(refusal("{\"a\" 1}") == "f.json: byte 5: expected ':' after the key, found '1'");
  CHECK(refusal("{\"a\":1,\"b\":2,\"a\":3}") == "f.json: byte 13: duplicate key 'a'");
  CHECK(refusal("true false") == "f.json: byte 5: expected nothing after the value, found 'f'");
  CHECK(refusal("\"abc") == "f.json: byte 0: this string has no end");
  CHECK(refusal("\"a\nb\"") == "f.json: byte 2: expected no control character in a string, found '\\x0a'");
  CHECK(refusal("01") == "f.json: byte 0: a number must not start with 0");
  CHECK(refusal("-") == "f.json: byte 1: expected a digit, found the end");
  CHECK(refusal("1.") == "f.json: byte 2: expected a digit, found the end");
  CHECK(refusal("[1e]") == "f.json: byte 3: expected a digit, found ']'");
  CHECK(refusal("1e999") == "f.json: byte 0: number '1e999' is outside the range of a double");
  CHECK(refusal("+1") == "f.json: byte 0: expected a value, found '+'");
  CHECK(refusal("NaN") == "f.json: byte 0: expected a value, found 'N'");
  CHECK(refusal("\xef\xbb\xbf{}") == "f.json: byte 0: expected a value, found '\\xef'");
  CHECK(refusal("\"\xc3(\"") == "f.json: byte 1: invalid UTF-8: byte '\\xc3'");
  CHECK(refusal(R"("\ud83d")") == "f.json: byte 1: half of a surrogate pair");
  CHECK(refusal(R"("\ude00")") == "f.json: byte 1: half of a surrogate pair");
  CHECK(refusal(R"("\ud83d\u0041")") == "f.json: byte 1: half of a surrogate pair");
  CHECK(refusal(R"("\u12g4")").find("byte 1: invalid escape") != std::string::npos);
  CHECK(refusal(R"("\u-123")").find("byte 1: invalid escape") != std::string::npos);
  CHECK(refusal(R"("\x41")").find("byte 1: invalid escape") != std::string::npos);
}

TEST_CASE("JSON nested too deep is an error, not a stack overflow") {
  CHECK(refusal(std::string(100, '[') + std::string(100, ']')) == "accepted");
  CHECK(refusal(std::string(200000, '[')) == "f.json: byte 101: nested deeper than 100 levels");
}

TEST_CASE("JSON is written in order of insertion, numbers shortest, compact or indented") {
  Json json = Json::object();
  json.set("verdict", "stable");
  json.set("steps", 200);
  json.set("lr", 1e-6);
  json.set("loss", std::numeric_limits<double>::quiet_NaN());
  json.set("worst", -std::numeric_limits<double>::infinity());
  json.set("one", 1.0);
  json.set("ok", true);
  json.set("nothing", Json());
  Json list = Json::array();
  list.items.push_back(std::int64_t{9007199254740993});
  list.items.push_back(0.1f + 0.2);
  json.set("list", list);
  json.set("empty", Json::object());
  CHECK(dump_json(json) ==
        R"({"verdict":"stable","steps":200,"lr":1e-06,"loss":null,"worst":null,"one":1,"ok":true,"nothing":null,)"
        R"("list":[9007199254740993,0.30000000149011613],"empty":{}})");
  Json small = Json::object();
  small.set("a", Json::array());
  Json pair = Json::array();
  pair.items = {1, 2};
  small.set("b", pair);
  CHECK(dump_json(small, 2) == "{\n  \"a\": [],\n  \"b\": [\n    1,\n    2\n  ]\n}");
}

TEST_CASE("JSON strings are escaped so that any text survives, and bad bytes become U+FFFD") {
  CHECK(dump_json("\"\\\b\f\n\r\t\x01\x1f\x7f/") == "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/\"");
  CHECK(dump_json("\xc3\xa9\xff!") == "\"\xc3\xa9\xef\xbf\xbd!\"");
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  CHECK(parse_json(dump_json(all), "all").string == all);
}

TEST_CASE("JSON does not follow the locale") {
  struct CommaPoint : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaPoint));
  const std::string written = dump_json(parse_json("[0.5,10000,1234567.25]", "f"));
  std::locale::global(before);
  CHECK(written == "[0.5,10000,1234567.25]");
}

TEST_CASE("UTF-8 is accepted exactly where RFC 3629 allows it") {
  const auto length = [](const char* bytes) { return utf8_length(std::string_view(bytes), 0); };
  CHECK(length("a") == 1);
  CHECK(length("\xc2\x80") == 2);          // U+0080
  CHECK(length("\xe0\xa0\x80") == 3);      // U+0800
  CHECK(length("\xed\x9f\xbf") == 3);      // U+D7FF
  CHECK(length("\xee\x80\x80") == 3);      // U+E000
  CHECK(length("\xf0\x90\x80\x80") == 4);  // U+10000
  CHECK(length("\xf4\x8f\xbf\xbf") == 4);  // U+10FFFF
  CHECK(length("") == 0);
  CHECK(length("\x80") == 0);              // a continuation byte alone
  CHECK(length("\xc1\xbf") == 0);          // overlong
  CHECK(length("\xe0\x9f\xbf") == 0);      // overlong
  CHECK(length("\xf0\x8f\xbf\xbf") == 0);  // overlong
  CHECK(length("\xed\xa0\x80") == 0);      // surrogate U+D800
  CHECK(length("\xf4\x90\x80\x80") == 0);  // U+110000
  CHECK(length("\xe2\x82") == 0);          // cut short
  CHECK(length("\xe2\x82z") == 0);
}

TEST_CASE("every code point is written as UTF-8 that is accepted with its own length") {
  int wrong = 0, seen = 0;
  std::string last;
  for (std::uint32_t code = 0; code <= 0x10ffff; ++code) {
    if (!is_code_point(code)) continue;
    std::string text;
    append_utf8(text, code);
    const std::size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    // UTF-8 sorts bytewise as code points do (RFC 3629, section 1), so an order that grows means that no two are alike.
    wrong += text.size() != length || utf8_length(text, 0) != length || !(code == 0 || last < text);
    last = text;
    ++seen;
  }
  CHECK(seen == 0x110000 - 0x800);
  CHECK(wrong == 0);
}
