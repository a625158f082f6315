#include "report/colour_scale.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace normlab {

namespace {

// The transfer function of sRGB (IEC 61966-2-1), both ways.
std::uint8_t encoded(double linear) {
  const double clipped = std::clamp(linear, 0.0, 1.0);
  const double value = clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * std::pow(clipped, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * value));
}
double decoded(std::uint8_t value) {
  const double share = value / 255.0;
  return share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4);
}

}  // namespace

std::string Colour::hex() const {
  std::string text = "#";
  for (const int part : {int{red}, int{green}, int{blue}}) {
    text += "0123456789abcdef"[part / 16];
    text += "0123456789abcdef"[part % 16];
  }
  return text;
}

Colour scale_colour(double share) {
  const auto between = [&](double first, double last) { return first + (last - first) * share; };
  // The ends were chosen such that all colours between lie inside sRGB.
  const double lightness = between(0.30, 0.94), chroma = between(0.08, 0.11);
  const double hue = between(275, 105) * std::numbers::pi / 180;
  const double a = chroma * std::cos(hue), b = chroma * std::sin(hue);
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  return {encoded(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          encoded(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          encoded(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

double luminance(Colour c) { return 0.2126 * decoded(c.red) + 0.7152 * decoded(c.green) + 0.0722 * decoded(c.blue); }

bool takes_white_text(Colour background) {
  const double light = luminance(background);
  return 1.05 / (light + 0.05) > (light + 0.05) / 0.05;
}

}  // namespace normlab
