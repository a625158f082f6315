// A scale of colours for the cells of a map.
#pragma once

#include <cstdint>
#include <string>

namespace normlab {

struct Colour {
  std::uint8_t red = 0, green = 0, blue = 0;  // sRGB
  std::string hex() const;                    // "#0072b2"
};

// From dark blue (0) over green to light yellow (1), `share` in [0, 1]. Lightness, chroma and hue run linearly in OKLab
// (Ottosson 2020, bottosson.github.io/posts/oklab), so that equal steps look equal; as lightness alone orders the
// colours, they read in grey and with any colour deficiency.
Colour scale_colour(double share);

// Relative luminance of a colour, WCAG 2.2: 0 black, 1 white.
double luminance(Colour colour);

// Whether white text has more contrast (WCAG 2.2) against `background` than black. Whichever has more has at least 4.5
// : 1.
bool takes_white_text(Colour background);

}  // namespace normlab
