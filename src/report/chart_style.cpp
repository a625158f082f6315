// How charts look: colours, dashes, strokes, on light and on dark screens.
#include <array>

#include "core/text.h"
#include "report/chart.h"

namespace normlab {

namespace {

// Okabe and Ito, "Color Universal Design" (2008), less the yellow, which vanishes on white; black comes as grey.
constexpr std::array<const char*, 7> kOnLight = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#444444"};
constexpr std::array<const char*, 7> kOnDark = {"#3f9be0", "#f0763a", "#22b98c", "#d98cb6",
                                                "#f0b429", "#8fd0f7", "#c8c8c8"};
constexpr std::array<const char*, 4> kDashes = {"none", "7 4", "2 4", "9 4 2 4"};

}  // namespace

std::string series_class(std::size_t i) {
  return str("c", i % kOnLight.size(), " d", i / kOnLight.size() % kDashes.size());
}

std::string chart_css() {
  std::string css =
      ".normlab-chart text{font-family:Helvetica,Arial,\"DejaVu Sans\",sans-serif;font-size:12px;fill:#333}\n"
      ".normlab-chart .title{font-size:15px;font-weight:bold;fill:#111}\n"
      ".normlab-chart .quiet{fill:#666}\n"
      ".normlab-chart .paper{fill:#fff}\n"
      ".normlab-chart .grid{stroke:#e4e4e4;stroke-width:1}\n"
      ".normlab-chart .axis{stroke:#777;stroke-width:1}\n"
      ".normlab-chart .reference{stroke:#666;stroke-width:1.2;stroke-dasharray:5 4}\n"
      ".normlab-chart .leader{stroke:#999;stroke-width:1}\n"
      ".normlab-chart .line{stroke-width:1.8;stroke-linejoin:round;stroke-linecap:butt}\n"
      ".normlab-chart .dot{stroke-width:5;stroke-linecap:round}\n"
      ".normlab-chart .raw{stroke-width:1;stroke-opacity:0.3}\n"
      ".normlab-chart .raw.dot{stroke-width:3}\n"
      ".normlab-chart path.band{stroke:none;fill-opacity:0.18}\n"
      ".normlab-chart .cross{stroke-width:2.2;stroke-linecap:round}\n";
  for (std::size_t i = 0; i < kDashes.size(); ++i) {
    css += str(".normlab-chart .line.d", i, "{stroke-dasharray:", kDashes[i], "}\n");
  }
  css += ".normlab-chart .raw.line{stroke-dasharray:none}\n";
  const auto colours = [&](const std::array<const char*, 7>& of) {
    for (std::size_t i = 0; i < of.size(); ++i) {
      css += str(".normlab-chart .c", i, "{stroke:", of[i], "}.normlab-chart .band.c", i, "{fill:", of[i], "}\n");
    }
  };
  colours(kOnLight);
  css +=
      "@media (prefers-color-scheme:dark){\n"
      ".normlab-chart text{fill:#d0d4d9}\n"
      ".normlab-chart .title{fill:#f2f2f2}\n"
      ".normlab-chart .quiet{fill:#9aa1a9}\n"
      ".normlab-chart .paper{fill:#16191d}\n"
      ".normlab-chart .grid{stroke:#2a2f36}\n"
      ".normlab-chart .axis{stroke:#7d858e}\n"
      ".normlab-chart .reference{stroke:#9aa1a9}\n"
      ".normlab-chart .leader{stroke:#6d747c}\n";
  colours(kOnDark);
  return css + "}\n";
}

}  // namespace normlab
