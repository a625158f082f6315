#include "report/chart_text.h"

#include <algorithm>
#include <numeric>

#include "core/text.h"
#include "core/utf8.h"

namespace normlab {

namespace {

// Em widths of the printable ASCII characters in DejaVu Sans, in hundredths, rounded up.
constexpr unsigned char kWidths[] = {
    32, 41, 46, 84, 64, 96, 78, 28, 40,  40, 50, 84, 32, 37, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,  // blank to 7
    64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79,  // 8 to O
    61, 79, 70, 64, 62, 74, 69, 99, 69,  62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64,  // P to g
    64, 28, 28, 58, 28, 98, 64, 62, 64,  64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84};     // h to ~
static_assert(sizeof kWidths == 95);

// Bytes of the character at `at`; a byte that is no UTF-8 counts as one character.
std::size_t character(std::string_view text, std::size_t at) { return std::max<std::size_t>(1, utf8_length(text, at)); }

double character_width(std::string_view one) {
  if (one.size() > 2)
    return one.size() == 3 && static_cast<unsigned char>(one[0]) < 0xe3 ? 0.84 : 1.0;  // signs; CJK, emoji
  const auto byte = static_cast<unsigned char>(one[0]);
  return byte >= 0x20 && byte < 0x7f ? kWidths[byte - 0x20] / 100.0 : 0.8;
}

}  // namespace

std::string xml_escape(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const char c = text[at];
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\n' || c == '\r' || c == '\t')
      out += ' ';
    else if (length == 0 || control || text.substr(at, length) == "\xef\xbf\xbe" ||
             text.substr(at, length) == "\xef\xbf\xbf")
      out += "\xef\xbf\xbd";
    else
      out += text.substr(at, length);
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

double text_width(std::string_view text, double size) {
  double width = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = character(text, at);
    width += character_width(text.substr(at, length));
    at += length;
  }
  return width * size;
}

std::size_t text_length(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += character(text, at)) ++count;
  return count;
}

std::string cut_text(const std::string& text, std::size_t most) {
  if (text_length(text) <= most) return text;
  std::string start = text;
  while (text_length(start) >= most) {
    while (start.size() > 1 && (static_cast<unsigned char>(start.back()) & 0xc0) == 0x80) start.pop_back();
    start.pop_back();
  }
  return start + "…";
}

std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], text_length(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - text_length(row[i]), ' ');
      line += str(i == 0 ? "" : "  ", i >= right.size() || right[i] ? blanks + row[i] : row[i] + blanks);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::vector<std::string> wrap_text(std::string_view text, double size, double width) {
  std::vector<std::string> lines;
  while (text_width(text, size) > width) {
    std::size_t end = 0, at_sign = 0;
    for (std::size_t next = character(text, 0); text_width(text.substr(0, next), size) <= width || end == 0;
         next += character(text, next)) {
      end = next;
      if (std::string_view(" /,_-").find(text[next - 1]) != std::string_view::npos) at_sign = next;
    }
    // A blank that just does not fit any more is still a good place.
    if (end < text.size() && text[end] == ' ') at_sign = end + 1;
    if (at_sign > 0) end = at_sign;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    while (!line.empty() && line.back() == ' ') line.remove_suffix(1);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    lines.emplace_back(line);
    if (text.empty()) return lines;
  }
  lines.emplace_back(text);
  return lines;
}

std::vector<double> spread_labels(const std::vector<double>& wanted, const std::vector<double>& heights, double top,
                                  double bottom) {
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a] < wanted[b]; });

  // Neighbours that touch form a block, which sits where its members are moved least on average; blocks that then touch
  // merge.
  struct Block {
    std::vector<std::size_t> members;
    double height = 0, wanted_tops = 0, top = 0;
  };
  std::vector<Block> blocks;
  const auto settle = [&](Block& block) {
    const double best = block.wanted_tops / static_cast<double>(block.members.size());
    block.top = std::max(top, std::min(best, bottom - block.height));
  };
  for (const std::size_t label : order) {
    Block block{{label}, heights[label], wanted[label] - heights[label] / 2, 0};
    settle(block);
    while (!blocks.empty() && blocks.back().top + blocks.back().height > block.top) {
      Block& above = blocks.back();
      // What the block below wants, told as a wish for the top of the joint block.
      above.wanted_tops += block.wanted_tops - above.height * static_cast<double>(block.members.size());
      above.members.insert(above.members.end(), block.members.begin(), block.members.end());
      above.height += block.height;
      block = std::move(above);
      blocks.pop_back();
      settle(block);
    }
    blocks.push_back(std::move(block));
  }
  std::vector<double> centres(wanted.size());
  for (const Block& block : blocks) {
    double y = block.top;
    for (const std::size_t label : block.members) {
      centres[label] = y + heights[label] / 2;
      y += heights[label];
    }
  }
  return centres;
}

}  // namespace normlab
