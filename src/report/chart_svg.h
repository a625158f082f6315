// The few shapes a chart is made of, as SVG elements with a class; how a class looks is said in chart_style.cpp.
// Coordinates in pixels from the upper left corner.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

struct SvgPoint {
  double x = 0;
  double y = 0;
};

std::string svg_number(double value);  // two decimals at most: 12.5
std::string svg_text(double x, double y, std::string_view attributes, std::string_view content);
std::string svg_line(double x1, double y1, double x2, double y2, std::string_view kind);
std::string svg_cross(double x, double y, std::string_view kind);

// A curve through the points, x ascending, interrupted where there is none; a point without neighbours becomes a dot.
// Of more points than can be seen, only the first, lowest, highest and last of each half pixel are kept.
std::string svg_curve(const std::vector<std::optional<SvgPoint>>& points, std::string_view kind);

// The area between two curves of the same x, interrupted where either has no point.
std::string svg_band(const std::vector<std::optional<SvgPoint>>& upper,
                     const std::vector<std::optional<SvgPoint>>& lower, std::string_view kind);

}  // namespace normlab
