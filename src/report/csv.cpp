#include "report/csv.h"

#include <algorithm>
#include <limits>
#include <set>

#include "core/files.h"
#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

namespace {

// Walks over the text record by record and counts lines for the messages.
class CsvParser {
 public:
  CsvParser(std::string_view text, const std::string& file) : text_(text), file_(file) {
    if (text_.substr(0, 3) == "\xef\xbb\xbf") at_ = 3;
    if (text_.find('\0') != std::string_view::npos) fail("a zero byte: not a text file (UTF-16, or damaged)");
  }

  bool at_end() const { return at_ == text_.size(); }
  std::size_t line() const { return line_; }

  bool only_blank_lines_left() const { return text_.find_first_not_of("\r\n", at_) == std::string_view::npos; }

  std::vector<std::string> record() {
    std::vector<std::string> cells;
    for (;;) {
      cells.push_back(next() == '"' ? quoted_cell() : plain_cell());
      if (next() != ',') break;
      ++at_;
    }
    if (next() == '\r') {
      ++at_;
      if (next() != '\n') fail("a carriage return without a line feed");
    }
    if (next() == '\n') ++at_, ++line_;
    return cells;
  }

  [[noreturn]] void fail(const std::string& what) const { fail_at(line_, what); }
  [[noreturn]] void fail_at(std::size_t line, const std::string& what) const {
    throw IoError(str(file_, ":", line, ": ", what));
  }

 private:
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string plain_cell() {
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    const std::string_view cell = text_.substr(at_, end - at_);
    if (cell.find('"') != std::string_view::npos) fail(str("a quote inside the unquoted cell ", quote(cell)));
    at_ = end;
    return std::string(cell);
  }

  std::string quoted_cell() {
    const std::size_t opened = line_;
    std::string cell;
    for (++at_;; ++at_) {
      if (at_end()) fail_at(opened, "a quote is opened here and never closed");
      if (text_[at_] == '"' && text_.substr(at_, 2) != "\"\"") break;
      if (text_[at_] == '"') ++at_;
      if (text_[at_] == '\n') ++line_;
      cell += text_[at_];
    }
    ++at_;
    if (!at_end() && next() != ',' && next() != '\r' && next() != '\n') fail("text after a closing quote");
    return cell;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

std::vector<std::string> trimmed(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = std::string(trim(cell));
  return cells;
}

// What core/text reads, and the spellings of the old Microsoft runtime.
std::optional<double> parse_cell(std::string_view cell) {
  if (const auto value = parse_double(cell)) return value;
  const std::string word = lower(cell);
  const bool negative = word[0] == '-';
  const std::string_view rest = std::string_view(word).substr(negative || word[0] == '+' ? 1 : 0);
  if (rest.substr(0, 5) == "1.#in" && rest.substr(0, 6) != "1.#ind") {
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  if (rest.substr(0, 6) == "1.#ind" || rest.substr(0, 6) == "1.#qna") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

}  // namespace

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) {
    if (c == '"') cell += c;
    cell += c;
  }
  return cell + '"';
}

std::string csv_cell(double value) { return number(value); }
std::string csv_cell(float value) { return number(value); }
std::string csv_cell(std::optional<double> value) { return value ? number(*value) : std::string(); }

std::string csv_row(const std::vector<std::string>& cells) {
  std::string row;
  for (const std::string& cell : cells) (row += csv_cell(cell)) += ',';
  row.back() = '\n';
  return row;
}

bool CsvTable::has(std::string_view column) const {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

std::vector<std::optional<double>> CsvTable::numbers(std::string_view column) const {
  const auto found = std::find(columns.begin(), columns.end(), column);
  if (found == columns.end()) {
    throw IoError(str(file, ": no column ", quote(column), did_you_mean(column, columns), "; its columns are ",
                      join(columns, ", ")));
  }
  const auto index = static_cast<std::size_t>(found - columns.begin());
  std::vector<std::optional<double>> values(cells.size());
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const std::string_view cell = trim(cells[row][index]);
    if (cell.empty()) continue;
    values[row] = parse_cell(cell);
    if (!values[row]) {
      throw IoError(str(file, ":", lines[row], ": row ", row + 1, ", column ", quote(column), ": ", quote(cell),
                        " is not a number"));
    }
  }
  return values;
}

CsvTable parse_csv(std::string_view text, const std::string& file) {
  CsvParser parser(text, file);
  if (parser.only_blank_lines_left()) parser.fail("the file is empty: expected a header line");
  CsvTable table;
  table.file = file;
  table.columns = trimmed(parser.record());
  std::set<std::string_view> seen;
  for (const std::string& column : table.columns)
    if (!seen.insert(column).second) parser.fail_at(1, str("the column name ", quote(column), " is there twice"));
  while (!parser.only_blank_lines_left()) {
    const std::size_t line = parser.line();
    std::vector<std::string> cells = parser.record();
    if (cells.size() != table.columns.size()) {
      const bool cut = parser.at_end() && text.back() != '\n' && cells.size() < table.columns.size();
      parser.fail_at(line, str(cells.size(), cells.size() == 1 ? " cell" : " cells", " where the header has ",
                               table.columns.size(), cut ? " (the last line is only half written)" : ""));
    }
    if (trimmed(cells) == table.columns) parser.fail_at(line, "the header is repeated here: two files in one?");
    table.cells.push_back(std::move(cells));
    table.lines.push_back(line);
  }
  return table;
}

CsvTable read_csv(const std::filesystem::path& path) {
  if (std::filesystem::is_character_file(path)) throw IoError(str(path.string(), ": a device, not a CSV file"));
  return parse_csv(read_file(path), path.string());
}

std::string cut_rows_after(const std::string& csv_text, std::int64_t step, const std::string& file) {
  std::string kept;
  std::size_t line = 1;
  const std::size_t last = csv_text.find_last_not_of("\r\n");  // only blank lines after it
  for (std::size_t at = 0, end = 0; (end = csv_text.find('\n', at)) != std::string::npos; at = end + 1, ++line) {
    const std::string_view row = std::string_view(csv_text).substr(at, end + 1 - at);
    if (line > 1) {
      if (last == std::string::npos || at > last) break;
      const std::string_view cell = trim(row.substr(0, row.find(',')));
      const auto value = parse_double(cell);
      if (!value) throw IoError(str(file, ":", line, ": the first column is ", quote(cell), ", not a step"));
      if (!(*value <= static_cast<double>(step))) continue;
    }
    kept += row;
  }
  return kept;
}

}  // namespace normlab
