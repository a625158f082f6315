// The CSV dialect of every file normlab writes, and a strict reader for these and for other tools' files.
//
// Written: comma, `.` decimals whatever the locale, LF, one header, shortest round-trip numbers, `nan`, `inf`, `-inf`,
// an empty cell for "not measured", quotes only around cells that need them. Read in addition: a byte order mark, CRLF,
// a missing last newline, blanks around names and numbers, the usual spellings of nan and infinity. Every error is an
// IoError `file:line: ...`.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

std::string csv_cell(std::string_view text);  // quoted where a comma, quote or line break asks for it
inline std::string csv_cell(const char* text) { return csv_cell(std::string_view(text)); }
inline std::string csv_cell(const std::string& text) { return csv_cell(std::string_view(text)); }
std::string csv_cell(double value);
std::string csv_cell(float value);
std::string csv_cell(std::optional<double> value);  // nothing = not measured = an empty cell
std::string csv_cell(std::integral auto value) { return std::to_string(value); }

// One line with its LF, of at least one cell. csv_row(3, 0.5, std::optional<double>()) is "3,0.5,\n".
std::string csv_row(const std::vector<std::string>& cells);
template <class... Cells>
std::string csv_row(const Cells&... cells) {
  std::string row;
  ((row += csv_cell(cells), row += ','), ...);
  row.back() = '\n';
  return row;
}

// A table as text. Columns are found by name, never by position.
struct CsvTable {
  std::string file;                             // as named in messages
  std::vector<std::string> columns;             // distinct
  std::vector<std::vector<std::string>> cells;  // [row][column], without quotes
  std::vector<std::size_t> lines;               // [row]: the line of the file it starts on, from 1

  bool has(std::string_view column) const;

  // One column as numbers; an empty cell is nothing, which is neither nan nor 0. A missing column or a cell that is no
  // number
  // ("452a29") is an IoError naming line, row and column.
  std::vector<std::optional<double>> numbers(std::string_view column) const;
};

// Errors: no header, a column name twice, a row with another number of cells, the header once more further down, an
// open quote.
CsvTable parse_csv(std::string_view text, const std::string& file);
CsvTable read_csv(const std::filesystem::path& path);

// The header and the complete rows (those with their newline) whose first column is at most `step`, byte for byte. What
// a killed run wrote after its checkpoint goes, as does a last line cut in the middle. "" where not even the header is
// complete. A first column that is no number is an IoError naming the line.
std::string cut_rows_after(const std::string& csv_text, std::int64_t step, const std::string& file);

}  // namespace normlab
