#include "report/csv.h"

#include <clocale>
#include <cmath>
#include <limits>
#include <locale>

#include "normlab/error.h"
#include "test.h"

using namespace normlab;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::string error_of(const std::string& text) {
  try {
    parse_csv(text, "m.csv").numbers("loss");
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

std::string cut_error_of(const std::string& text) {
  try {
    cut_rows_after(text, 9, "m.csv");
  } catch (const IoError& error) {
    return error.what();
  }
  return "no error";
}

// As German has it: 1.234,5.
struct GermanNumbers : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

}  // namespace

TEST_CASE(
    "a CSV row has shortest round-trip numbers, one spelling of nan and inf, and empty cells for what was not "
    "measured") {
  CHECK(csv_row(3, 0.1, 0.1f, std::optional<double>()) == "3,0.1,0.1,\n");
  CHECK(csv_row(kNan, -kNan, kInf, -kInf, std::optional<double>(kNan)) == "nan,nan,inf,-inf,nan\n");
  CHECK(csv_row(1.0 / 3.0, 5e-324, -0.0) == "0.3333333333333333,5e-324,-0\n");
  CHECK(csv_row(std::int64_t{1} << 53, "loss") == "9007199254740992,loss\n");
}

TEST_CASE("a CSV cell is quoted only where a comma, a quote or a line break asks for it") {
  CHECK(csv_row({"plain text", "a,b", "say \"hi\"", "two\nlines", ""}) ==
        "plain text,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\n");
}

TEST_CASE("a quoted CSV cell reads back as it was written") {
  const std::vector<std::string> cells = {"a,b", "say \"hi\"", "two\r\nlines", "\"", "", " blank "};
  const CsvTable table = parse_csv("a,b,c,d,e,f\n" + csv_row(cells) + "1,2,3,4,5,6\n", "m.csv");
  REQUIRE(table.cells.size() == 2);
  CHECK(table.cells[0] == cells);
  CHECK(table.lines == std::vector<std::size_t>{2, 4});  // the line break inside the first row counts
}

TEST_CASE("CSV columns are found by name whatever their order") {
  const CsvTable table = parse_csv("loss,step\n2.5,1\n2.25,2\n", "m.csv");
  CHECK(table.numbers("step") == std::vector<std::optional<double>>{1.0, 2.0});
  CHECK(table.numbers("loss") == std::vector<std::optional<double>>{2.5, 2.25});
  CHECK(table.has("loss"));
  CHECK_FALSE(table.has("los"));
}

TEST_CASE("the CSV reader takes a byte order mark, CRLF, blanks around numbers and a missing last newline") {
  const CsvTable table = parse_csv("\xef\xbb\xbfstep, loss\r\n1, 2.5\r\n2, 2.25", "m.csv");
  CHECK(table.columns == std::vector<std::string>{"step", "loss"});
  CHECK(table.numbers("loss") == std::vector<std::optional<double>>{2.5, 2.25});
  CHECK(parse_csv("step,loss\n1,2\n\r\n\n", "m.csv").cells.size() == 1);
}

TEST_CASE("the CSV reader knows every usual spelling of nan and infinity, and empty is neither nan nor zero") {
  for (const char* spelling : {"nan", "-nan", "NaN", "NAN", "nan(ind)", "-nan(ind)", "1.#QNAN", "-1.#IND"}) {
    const auto value = parse_csv(std::string("loss,b\n") + spelling + ",1\n", "m.csv").numbers("loss")[0];
    CAPTURE(spelling);
    REQUIRE(value.has_value());
    CHECK(std::isnan(*value));
  }
  for (const char* spelling : {"inf", "+inf", "Inf", "Infinity", "infinity", "1.#INF"}) {
    CAPTURE(spelling);
    CHECK(parse_csv(std::string("loss,b\n") + spelling + ",1\n", "m.csv").numbers("loss")[0] == kInf);
  }
  for (const char* spelling : {"-inf", "-Infinity", "-1.#INF"}) {
    CAPTURE(spelling);
    CHECK(parse_csv(std::string("loss,b\n") + spelling + ",1\n", "m.csv").numbers("loss")[0] == -kInf);
  }
  const auto values = parse_csv("loss,b\n,1\n0,1\n", "m.csv").numbers("loss");
  CHECK_FALSE(values[0].has_value());
  CHECK(values[1] == 0.0);
}

TEST_CASE("a CSV fault is one error with file, line and what was found") {
  CHECK(error_of("step,loss\n1,2.5\n2,452a29\n") == "m.csv:3: row 2, column 'loss': '452a29' is not a number");
  CHECK(error_of("step,loss\n1,1,5\n") == "m.csv:2: 3 cells where the header has 2");
  CHECK(error_of("step,loss,lr\n1,2,3\n2,2.") ==
        "m.csv:3: 2 cells where the header has 3 (the last line is only half written)");
  CHECK(error_of("step,loss\n1,2\n\n2,3\n") == "m.csv:3: 1 cell where the header has 2");
  CHECK(error_of("step,loss,step\n1,2,3\n") == "m.csv:1: the column name 'step' is there twice");
  CHECK(error_of("step,loss\n1,2\nstep,loss\n2,3\n") == "m.csv:3: the header is repeated here: two files in one?");
  CHECK(error_of("") == "m.csv:1: the file is empty: expected a header line");
  CHECK(error_of("\xef\xbb\xbf\n") == "m.csv:1: the file is empty: expected a header line");
  CHECK(error_of("step,lose\n1,2\n") == "m.csv: no column 'loss' (did you mean 'lose'?); its columns are step, lose");
  CHECK(error_of("step,loss\n1,\"2\n3\n") == "m.csv:2: a quote is opened here and never closed");
  CHECK(error_of("step,loss\n1,\"2\"3\n") == "m.csv:2: text after a closing quote");
  CHECK(error_of("step,loss\n1,2\"3\"\n") == "m.csv:2: a quote inside the unquoted cell '2\"3\"'");
  CHECK(error_of("step,loss\r1,2\r") == "m.csv:1: a carriage return without a line feed");
  CHECK(error_of(std::string("s\0t\0", 4)) == "m.csv:1: a zero byte: not a text file (UTF-16, or damaged)");
}

TEST_CASE("cutting a CSV after a step keeps header and earlier rows byte for byte and drops a half-written last line") {
  const std::string text = "step,loss\n1,2.50\n5,nan\n5,\n6,2\n10,1\n4";
  CHECK(cut_rows_after(text, 5, "m.csv") == "step,loss\n1,2.50\n5,nan\n5,\n");
  CHECK(cut_rows_after(text, 0, "m.csv") == "step,loss\n");
  CHECK(cut_rows_after(text, 100, "m.csv") == "step,loss\n1,2.50\n5,nan\n5,\n6,2\n10,1\n");
  CHECK(cut_rows_after("step,loss\r\n1,2\r\n2,3\r\n", 1, "m.csv") == "step,loss\r\n1,2\r\n");
  CHECK(cut_rows_after("step,lo", 5, "m.csv").empty());
  CHECK(cut_rows_after("step,loss\n1,2\n\n\r\n", 1, "m.csv") == "step,loss\n1,2\n");
  CHECK(cut_rows_after("\n\n", 1, "m.csv") == "\n");
  CHECK(cut_error_of("step,loss\n1,2\nx,3\n") == "m.csv:3: the first column is 'x', not a step");
}

TEST_CASE("CSV numbers are written and read with a point under a locale that uses commas") {
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new GermanNumbers));
  const bool german = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr || std::setlocale(LC_ALL, "de_DE") != nullptr;
  const std::string row = csv_row(1234567, 1234.5);
  const auto value = parse_csv("a,loss\n1,1234.5\n", "m.csv").numbers("loss")[0];
  std::setlocale(LC_ALL, "C");
  std::locale::global(before);
  if (!german) WARN("the C locale de_DE is not installed: checked with a C++ locale only");
  CHECK(row == "1234567,1234.5\n");
  CHECK(value == 1234.5);
}
