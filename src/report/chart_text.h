// Text inside drawings: escaping, how wide it will be, where to break it, and labels that must not overlap.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// `text` for XML and HTML, as content or inside double quotes. Line breaks become blanks; bytes and control characters
// that XML cannot hold become U+FFFD.
std::string xml_escape(std::string_view text);

// Width in pixels at `size` pixels per em. Fonts differ; the widths are those of DejaVu Sans, one of the widest in use.
double text_width(std::string_view text, double size);

// Characters (code points), for tables in a terminal.
std::size_t text_length(std::string_view text);

// At most `most` characters (>= 1), the last of them "…" where something was cut off.
std::string cut_text(const std::string& text, std::size_t most);

// Rows of cells as lines with two blanks between the columns. `right`: per column whether its cells stand at the right;
// columns beyond its end do.
std::string aligned(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

// Lines no wider than `width` pixels (at least one character each), broken after blanks, / , _ - where possible.
// Nothing is lost but the blanks at a break.
std::vector<std::string> wrap_text(std::string_view text, double size, double width);

// Labels of the given heights that want to be centred at `wanted` (any order): centres as near as possible to that
// without overlap and inside [top, bottom]. Needs the sum of the heights to fit.
std::vector<double> spread_labels(const std::vector<double>& wanted, const std::vector<double>& heights, double top,
                                  double bottom);

}  // namespace normlab
