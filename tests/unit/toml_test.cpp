#include "config/toml.h"

#include <clocale>
#include <cmath>
#include <limits>
#include <locale>

#include "../test.h"
#include "../toml_tagged.h"
#include "core/files.h"
#include "core/text.h"

using namespace normlab;

namespace {

std::string refusal(const std::string& text) {
  try {
    parse_toml(text, "a.toml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

// Reads `x = TEXT`.
Toml value_of(const std::string& text) { return *parse_toml("x = " + text, "a.toml").find("x"); }
std::string value_refusal(const std::string& text) { return refusal("x = " + text); }
std::string tagged(const std::string& text) { return dump_json(toml_tagged(parse_toml(text, "a.toml"))); }

bool is_leaf(const Json& json) {
  const Json* value = json.find("value");
  return json.members.size() == 2 && json.find("type") != nullptr && value != nullptr &&
         value->kind == Json::Kind::kString;
}

// Equal as the suite means it: members in any order, floats by value.
bool same(const Json& a, const Json& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size() || a.members.size() != b.members.size()) return false;
  if (is_leaf(a) && is_leaf(b)) {
    const std::string &type = a.find("type")->string, &left = a.find("value")->string, &right = b.find("value")->string;
    if (type != b.find("type")->string) return false;
    if (type != "float") return left == right;
    const auto x = parse_double(left), y = parse_double(right);
    return x && y && (*x == *y || (std::isnan(*x) && std::isnan(*y)));
  }
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (const auto& [key, value] : a.members) {
    const Json* other = b.find(key);
    if (other == nullptr || !same(value, *other)) return false;
  }
  return true;
}

std::vector<std::filesystem::path> toml_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  return files;
}

}  // namespace

TEST_CASE("a table of a hundred thousand keys is read, and its last key checked against its first") {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += str("key", i, " = ", i, "\n");
  const Toml root = parse_toml(text, "a.toml");
  CHECK(root.entries.size() == 100000);
  CHECK(root.find("key0")->integer == 0);
  CHECK(root.find("key99999")->integer == 99999);
  CHECK(root.find("key100000") == nullptr);
  CHECK(refusal(text + "key0 = 1\n") == "a.toml:100001:1: duplicate key 'key0' (first at line 1)");
}

TEST_CASE("every value and every key of a TOML text keeps its place and its order") {
  const Toml root =
      parse_toml("# first\n[run]\nname = \"a\"\n  seed =  7\n[sweep]\n\"model.norm\" = [1,\n  2]\n", "a.toml");
  REQUIRE(root.entries.size() == 2);
  const TomlEntry& run = root.entries[0];
  CHECK(run.key == "run");
  CHECK(run.place.line == 2);
  CHECK(run.place.column == 2);
  REQUIRE(run.value.entries.size() == 2);
  CHECK(run.value.entries[0].key == "name");
  CHECK(run.value.entries[1].key == "seed");
  CHECK(run.value.entries[1].place.line == 4);
  CHECK(run.value.entries[1].place.column == 3);
  CHECK(run.value.find("seed")->integer == 7);
  CHECK(run.value.find("seed")->place.line == 4);
  CHECK(run.value.find("seed")->place.column == 11);
  const Toml* list = root.find("sweep")->find("model.norm");
  REQUIRE(list != nullptr);
  REQUIRE(list->items.size() == 2);
  CHECK(list->items[1].place.line == 7);
  CHECK(list->items[1].place.column == 3);
  CHECK(root.find("model") == nullptr);
  CHECK(std::string(toml_error("a.toml", run.place, "no").what()) == "a.toml:2:2: no");
  CHECK(toml_error("a.toml", run.place, "no").exit_code() == 2);
}

TEST_CASE("TOML integers are exact in every base and refused outside 64 bits with the range named") {
  CHECK(value_of("9223372036854775807").integer == std::numeric_limits<std::int64_t>::max());
  CHECK(value_of("-9223372036854775808").integer == std::numeric_limits<std::int64_t>::min());
  CHECK(value_of("+1_000").integer == 1000);
  CHECK(value_of("-0").integer == 0);
  CHECK(value_of("0xDead_beef").integer == 3735928559);
  CHECK(value_of("0o755").integer == 493);
  CHECK(value_of("0b1101_0110").integer == 214);
  CHECK(value_of("3").number == 3.0);
  const std::string range = " is outside the range of integers, -9223372036854775808 to 9223372036854775807";
  for (const char* text :
       {"9223372036854775808", "-9223372036854775809", "18446744073709551616", "0xffffffffffffffff"}) {
    CHECK(value_refusal(text) == str("a.toml:1:5: '", text, "'", range));
  }
}

TEST_CASE("TOML floats need no point before an exponent, and ill-formed numbers say what is wrong") {
  CHECK(value_of("1e-5").kind == Toml::Kind::kFloat);
  CHECK(value_of("1e-5").number == 0.00001);
  CHECK(value_of("1E-5").number == 0.00001);
  CHECK(value_of("+1e+03").number == 1000.0);
  CHECK(value_of("1_0.2_5e1_0").number == 10.25e10);
  CHECK(value_of("5e-324").number == std::numeric_limits<double>::denorm_min());
  CHECK(value_of("1.7976931348623157e308").number == std::numeric_limits<double>::max());
  CHECK(std::signbit(value_of("-0.0").number));
  CHECK(value_of("-inf").number == -std::numeric_limits<double>::infinity());
  CHECK(value_of("+inf").number == std::numeric_limits<double>::infinity());
  CHECK(std::isnan(value_of("-nan").number));
  const std::string at = "a.toml:1:5: ";
  CHECK(value_refusal("1.e-5") == at + "'1.e-5' is not a number: a digit must follow the point");
  CHECK(value_refusal(".5") == at + "'.5' is not a number: a digit must stand before the point");
  CHECK(value_refusal("-.5") == at + "'-.5' is not a number: a digit must stand before the point");
  CHECK(value_refusal("007") == at + "'007' is not a number: no leading zeros");
  CHECK(value_refusal("1e") == at + "'1e' is not a number: the exponent needs digits");
  CHECK(value_refusal("1_.5") == at + "'1_.5' is not a number: an underscore must stand between two digits");
  CHECK(value_refusal("0b_1") == at + "'0b_1' is not a number: an underscore must stand between two digits");
  CHECK(value_refusal("0x") == at + "'0x' is not a number: digits are missing");
  CHECK(value_refusal("0x0o7") == at + "'0x0o7' is not a number: only digits may follow");
  CHECK(value_refusal("0b12") == at + "'0b12' is not a number: only digits may follow");
  CHECK(value_refusal("0x1.5") == at + "'0x1.5' is not a number: only digits may follow");
  CHECK(value_refusal("-0x1") == at + "'-0x1' is not a number: only decimals take a sign");
  CHECK(value_refusal("1e400") == at + "'1e400' is outside the range of a 64-bit float");
}

TEST_CASE("TOML words that are no values say how they would be") {
  CHECK(value_refusal("rmsnorm") == "a.toml:1:5: expected a value, found 'rmsnorm'; strings need quotes");
  CHECK(value_refusal("True") == "a.toml:1:5: expected a value, found 'True'; booleans are true and false");
  CHECK(value_refusal("") == "a.toml:1:5: expected a value, found the end of the file");
  CHECK(refusal("x = \ny = 1") == "a.toml:1:5: expected a value, found the end of the line");
  CHECK(value_refusal("0,1") == "a.toml:1:6: expected the end of the line, found ','");
  CHECK(refusal("\xe4r = 1") == "a.toml:1:1: invalid UTF-8: byte '\\xe4'");
  CHECK(refusal("\xc3\xa4r = 1") == "a.toml:1:1: expected a key, found '\\xc3\\xa4'");
  CHECK(refusal("lr max = 1") == "a.toml:1:4: expected '=' or '.' after the key, found 'm'");
}

TEST_CASE("TOML dates, times and arrays of tables are refused by name") {
  for (const char* text : {"1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00.5-07:00"})
    CHECK(value_refusal(text) == "a.toml:1:5: date-times, dates and times are not supported; write a string");
  CHECK(refusal("a = 1\n[[b]]\n") == "a.toml:2:1: arrays of tables are not supported");
}

TEST_CASE("TOML strings of all four kinds are decoded") {
  CHECK(value_of(R"("\b\t\n\f\r\"\\\u00e9\U0001F600")").string == "\b\t\n\f\r\"\\\xc3\xa9\xf0\x9f\x98\x80");
  CHECK(value_of(R"('C:\new\"x"')").string == "C:\\new\\\"x\"");
  CHECK(value_of("\"\"").string.empty());
  CHECK(value_of("\"\"\"\na \\  \n\n   b\n\"\"\"\"\"").string == "a b\n\"\"");
  CHECK(value_of("'''\n\\x ''y'''''").string == "\\x ''y''");
  CHECK(value_refusal("\"abc\ny = 1") == "a.toml:1:5: this string has no closing \" on its line");
  CHECK(value_refusal("'''abc\n") == "a.toml:1:5: this string has no closing '''");
  CHECK(value_refusal(R"("a\qb")") ==
        R"(a.toml:1:7: invalid escape: one of \b \t \n \f \r \" \\ \uXXXX \UXXXXXXXX is expected)");
  CHECK(value_refusal("\"a\\\n b\"").find("a.toml:1:7: invalid escape") == 0);  // a single-line string cannot go on
  CHECK(value_refusal(R"("\ud800")") ==
        "a.toml:1:6: this escape is not a Unicode code point (surrogates are not either)");
  CHECK(value_refusal(R"("\u12")") == "a.toml:1:6: escape \\u needs 4 hexadecimal digits");
}

TEST_CASE("TOML duplicates are errors that name both lines") {
  CHECK(refusal("lr = 1\n\nlr = 2") == "a.toml:3:1: duplicate key 'lr' (first at line 1)");
  CHECK(refusal("[train]\nlr = 1\nb.c = 1\nb.\"c\" = 2") == "a.toml:4:3: duplicate key 'train.b.c' (first at line 3)");
  CHECK(refusal("[a]\n[b]\n[a]") == "a.toml:3:2: table 'a' is already defined (line 1)");
  CHECK(refusal("[a.b]\n[a]\n[a]") == "a.toml:3:2: table 'a' is already defined (line 2)");
  CHECK(refusal("a = 1\n[a]") == "a.toml:2:2: table 'a' is already defined (line 1)");
  CHECK(refusal("a = 1\na.b = 2") == "a.toml:2:1: 'a' is an integer, not a table (line 1)");
  CHECK(refusal("a = {b = 1}\na.c = 2") ==
        "a.toml:2:1: 'a' is an inline table, to which nothing can be added (line 1)");
  CHECK(refusal("a = {b.c = 1}\n[a.b.d]") ==
        "a.toml:2:2: 'a' is an inline table, to which nothing can be added (line 1)");
  CHECK(refusal("x = {a = 1, a = 2}") == "a.toml:1:13: duplicate key 'x.a' (first at line 1)");
  CHECK(refusal("[a.b]\n[a]\nb.c = 1") ==
        "a.toml:3:1: 'a.b' has its own [header], so dotted keys cannot add to it (line 1)");
  CHECK(refusal("a.b.c = 1\n[a.b]") == "a.toml:2:4: table 'a.b' is already defined (line 1)");
  CHECK(refusal("[a.b.c]\n[a]\nb.d = 1\n[a.b]") == "a.toml:4:4: table 'a.b' is already defined (line 1)");
}

TEST_CASE("TOML tables may be opened from inside out, and sub-tables added to dotted ones") {
  CHECK(tagged("[a.b]\nx = true\n[a]\ny = true\n") ==
        R"({"a":{"b":{"x":{"type":"bool","value":"true"}},"y":{"type":"bool","value":"true"}}})");
  CHECK(tagged("[fruit]\napple.color = 'red'\n[fruit.apple.texture]\nsmooth = true\n") ==
        R"({"fruit":{"apple":{"color":{"type":"string","value":"red"},)"
        R"("texture":{"smooth":{"type":"bool","value":"true"}}}}})");
  CHECK(parse_toml("[a.b]\n[a]", "f").find("a")->place.line == 2);
}

TEST_CASE("a byte order mark and CRLF line ends change nothing, and other encodings are named") {
  const std::string plain = "[model]\nnorm = \"rmsnorm\"\ntext = \"\"\"\na\nb\"\"\"\n";
  std::string crlf = "\xef\xbb\xbf";
  for (const char c : plain) crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  CHECK(tagged(crlf) == tagged(plain));
  CHECK(tagged(plain.substr(0, plain.size() - 1)) == tagged(plain));
  CHECK(refusal("\xef\xbb\xbfx = ?") == "a.toml:1:5: expected a value, found '?'");
  CHECK(refusal("a = 1\rb = 2\r") == "a.toml:1:6: a carriage return without a line feed after it");
  const std::string utf16 = "a.toml:1:1: this looks like UTF-16; save the file as UTF-8";
  CHECK(refusal(std::string("\xff\xfe[\0]\0", 6)) == utf16);
  CHECK(refusal(std::string("\xfe\xff\0[\0]", 6)) == utf16);
  CHECK(refusal(std::string("[\0a\0", 4)) == utf16);
  CHECK(refusal(std::string("a = 1\0", 6)) == "a.toml:1:6: control character '\\x00' is not allowed");
  CHECK(refusal("a = 1 # \x07") == "a.toml:1:9: control character '\\x07' is not allowed");
}

TEST_CASE("TOML nested too deep is an error, not a stack overflow") {
  CHECK(value_refusal(std::string(200000, '[')) == "a.toml:1:105: nested deeper than 100 levels");
  CHECK(value_of(std::string(100, '[') + std::string(100, ']')).kind == Toml::Kind::kArray);
  std::string tables, dots = "a";
  for (int i = 0; i < 100000; ++i) tables += "{a=", dots += ".a";
  CHECK(value_refusal(tables) == "a.toml:1:305: nested deeper than 100 levels");
  // The parts of dotted keys count as levels too: two of 60 parts are too deep.
  const std::string sixty = dots.substr(0, 119);
  CHECK(refusal(sixty + " = {" + dots.substr(0, 77) + " = 1}") == "accepted");
  CHECK(refusal(sixty + " = {" + sixty + " = 1}") == "a.toml:1:246: nested deeper than 100 levels");
  CHECK(refusal(dots + " = 1") == "a.toml:1:201: a key of more than 100 parts");
  CHECK(refusal("[" + dots + "]") == "a.toml:1:202: a key of more than 100 parts");
}

TEST_CASE("TOML numbers do not follow the locale") {
  struct CommaPoint : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaPoint));
  const std::string c_before = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE"})
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  const double read = value_of("0.1").number;
  const std::string written = toml_number(1234567.5), error = value_refusal("10000 x"), comma = value_refusal("0,1");
  std::setlocale(LC_ALL, c_before.c_str());
  std::locale::global(before);
  CHECK(read == 0.1);
  CHECK(written == "1234567.5");
  CHECK(error == "a.toml:1:11: expected the end of the line, found 'x'");
  CHECK(comma == "a.toml:1:6: expected the end of the line, found ','");
}

TEST_CASE("one TOML value can be read alone") {
  CHECK(parse_toml_value(" 1e-3 ", "--set").number == 0.001);
  CHECK(parse_toml_value("[\"post\", 'pre']", "--set").items[1].string == "pre");
  CHECK(parse_toml_value("{a.b = 1}", "--set").find("a")->find("b")->integer == 1);
  const auto refused = [](const char* text) {
    try {
      parse_toml_value(text, "--set a.b");
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  CHECK(refused("rmsnorm") == "--set a.b:1:1: expected a value, found 'rmsnorm'; strings need quotes");
  CHECK(refused("1 2") == "--set a.b:1:3: expected nothing after the value, found '2'");
  CHECK(refused("1\n") == "--set a.b:1:2: expected nothing after the value, found the end of the line");
  CHECK(refused("") == "--set a.b:1:1: expected a value, found the end of the file");
}

TEST_CASE("what the TOML writers return reads back as the same value") {
  CHECK(toml_string("a\"\\\n\x1f\x7f\xc3\xa9") == "\"a\\\"\\\\\\n\\u001F\\u007F\xc3\xa9\"");
  std::string all;
  for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
  CHECK(value_of(toml_string(all)).string == all);
  CHECK(parse_toml(toml_key(all) + " = 1", "f").entries[0].key == all);
  CHECK(toml_key("lr-max_2") == "lr-max_2");
  CHECK(toml_key("model.norm") == "\"model.norm\"");
  CHECK(toml_key("") == "\"\"");
  CHECK_THROWS_AS(toml_string("\xff"), ConfigError);
  CHECK(toml_number(1.0) == "1.0");
  CHECK(toml_number(-0.0) == "-0.0");
  CHECK(toml_number(1e-6) == "1e-06");
  CHECK(toml_number(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(toml_number(std::numeric_limits<double>::quiet_NaN()) == "nan");
  for (const double value : {1.0, 0.1, 1e22, 1e23, -5e-324, 1.7976931348623157e308, 123456789.0, 3e15}) {
    CHECK(value_of(toml_number(value)).kind == Toml::Kind::kFloat);
    CHECK(value_of(toml_number(value)).number == value);
  }
}

TEST_CASE("the public toml-test suite: invalid texts are refused, valid ones equal or refused by name") {
  const auto suite = shared_folder() / "data" / "toml-test";
  NORMLAB_SKIP_UNLESS(std::filesystem::exists(suite), "the toml-test suite is not beside this checkout");
  int refused = 0, equal = 0, by_name = 0;
  for (const auto& path : toml_files(suite / "invalid")) {
    CAPTURE(path.string());
    CHECK_THROWS_AS(parse_toml(read_file(path), "t"), ConfigError);
    ++refused;
  }
  for (auto path : toml_files(suite / "valid")) {
    CAPTURE(path.string());
    try {
      const Json read = toml_tagged(parse_toml(read_file(path), "t"));
      const Json wanted = parse_json(read_file(path.replace_extension(".json")), "wanted");
      CAPTURE(dump_json(read), dump_json(wanted));
      CHECK(same(read, wanted));
      ++equal;
    } catch (const ConfigError& error) {
      CAPTURE(error.what());
      CHECK(std::string(error.what()).find("are not supported") != std::string::npos);
      ++by_name;
    }
  }
  CHECK(refused >= 300);
  CHECK(equal >= 100);
  CHECK(by_name >= 10);
  CHECK(by_name <= 40);
}
