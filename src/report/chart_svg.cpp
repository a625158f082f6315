#include "report/chart_svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/text.h"
#include "report/chart_text.h"

namespace normlab {

namespace {

std::vector<SvgPoint> thinned(const std::vector<SvgPoint>& points) {
  const auto column = [&](std::size_t i) { return std::floor(2 * points[i].x); };
  std::vector<SvgPoint> kept;
  for (std::size_t first = 0, end = 0; first < points.size(); first = end) {
    std::array<std::size_t, 4> shown = {first, first, first, first};
    for (end = first; end < points.size() && column(end) == column(first); ++end) {
      if (points[end].y < points[shown[1]].y) shown[1] = end;
      if (points[end].y > points[shown[2]].y) shown[2] = end;
      shown[3] = end;
    }
    std::sort(shown.begin(), shown.end());
    const auto shown_end = std::unique(shown.begin(), shown.end());
    std::for_each(shown.begin(), shown_end, [&](std::size_t i) { kept.push_back(points[i]); });
  }
  return kept;
}

}  // namespace

std::string svg_number(double value) {
  std::string digits = fixed(value, 2);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.back() == '.') digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

std::string svg_text(double x, double y, std::string_view attributes, std::string_view content) {
  return str("<text x=\"", svg_number(x), "\" y=\"", svg_number(y), "\"", attributes.empty() ? "" : " ", attributes,
             ">", xml_escape(content), "</text>\n");
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view kind) {
  return str("<path class=\"", kind, "\" d=\"M", svg_number(x1), " ", svg_number(y1), "L", svg_number(x2), " ",
             svg_number(y2), "\" fill=\"none\"/>\n");
}

std::string svg_cross(double x, double y, std::string_view kind) {
  return str("<path class=\"cross ", kind, "\" d=\"M", svg_number(x - 4), " ", svg_number(y - 4), "l8 8M",
             svg_number(x - 4), " ", svg_number(y + 4), "l8 -8\" fill=\"none\"/>\n");
}

std::string svg_curve(const std::vector<std::optional<SvgPoint>>& points, std::string_view kind) {
  std::string lines, dots;
  for (std::size_t first = 0, end = 0; first < points.size(); first = end + 1) {
    std::vector<SvgPoint> stretch;
    for (end = first; end < points.size() && points[end]; ++end) stretch.push_back(*points[end]);
    if (stretch.size() == 1) dots += str("M", svg_number(stretch[0].x), " ", svg_number(stretch[0].y), "h0");
    if (stretch.size() < 2) continue;  // with round ends, a line of no length is a dot
    char command = 'M';
    for (const SvgPoint& point : thinned(stretch)) {
      lines += str(command, svg_number(point.x), " ", svg_number(point.y));
      command = 'L';
    }
  }
  std::string out;
  if (!lines.empty()) out += str("<path class=\"line ", kind, "\" d=\"", lines, "\" fill=\"none\"/>\n");
  if (!dots.empty()) out += str("<path class=\"dot ", kind, "\" d=\"", dots, "\" fill=\"none\"/>\n");
  return out;
}

std::string svg_band(const std::vector<std::optional<SvgPoint>>& upper,
                     const std::vector<std::optional<SvgPoint>>& lower, std::string_view kind) {
  std::string areas;
  for (std::size_t first = 0, end = 0; first < upper.size(); first = end + 1) {
    std::vector<SvgPoint> above, below;
    for (end = first; end < upper.size() && upper[end] && lower[end]; ++end) {
      above.push_back(*upper[end]);
      below.push_back(*lower[end]);
    }
    if (above.size() < 2) continue;
    std::vector<SvgPoint> around = thinned(above), back = thinned(below);
    around.insert(around.end(), back.rbegin(), back.rend());
    char command = 'M';
    for (const SvgPoint& point : around) {
      areas += str(command, svg_number(point.x), " ", svg_number(point.y));
      command = 'L';
    }
    areas += 'Z';
  }
  return areas.empty() ? areas : str("<path class=\"band ", kind, "\" d=\"", areas, "\"/>\n");
}

}  // namespace normlab
