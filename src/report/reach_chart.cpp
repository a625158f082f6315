#include "report/reach_chart.h"

#include <cmath>

#include "core/text.h"
#include "report/chart.h"
#include "report/chart_svg.h"
#include "report/chart_text.h"

namespace normlab {

namespace {

constexpr double kCell = 7, kGap = 6, kMargin = 16, kTop = 66, kWidth = 760;

std::string cell(double x, double y, int state) {
  const char* kind = state == 2 ? "value" : state == 1 ? "takes" : "none";
  return str("<rect class=\"", kind, "\" x=\"", svg_number(x), "\" y=\"", svg_number(y), "\" width=\"",
             svg_number(kCell - 1), "\" height=\"", svg_number(kCell - 1), "\"/>\n");
}

}  // namespace

std::string reach_svg(const std::vector<ReachGrid>& norms, std::int64_t sequences, std::int64_t positions,
                      std::int64_t channels) {
  const double panel = static_cast<double>(channels) * kCell,
               tile = static_cast<double>(sequences) * (panel + kGap) + kGap,
               high = static_cast<double>(positions) * kCell + 38;
  const auto per_row = std::max<std::int64_t>(1, static_cast<std::int64_t>((kWidth - 2 * kMargin) / tile));
  const auto rows = (static_cast<std::int64_t>(norms.size()) + per_row - 1) / per_row;
  const double height = kTop + static_cast<double>(rows) * high + 4;
  std::string svg = str("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"normlab-chart\" viewBox=\"0 0 ",
                        svg_number(kWidth), " ", svg_number(height), "\" width=\"", svg_number(kWidth), "\" height=\"",
                        svg_number(height), "\" role=\"img\">\n<style>", chart_css(),
                        ".normlab-chart .none{fill:#e6e8ea}.normlab-chart .takes{fill:#56b4e9}.normlab-chart "
                        ".value{fill:#d55e00}\n@media (prefers-color-scheme:dark){.normlab-chart .none{fill:#2a2f36}"
                        ".normlab-chart .takes{fill:#3f9be0}.normlab-chart .value{fill:#f0763a}}\n</style>\n");
  svg +=
      str("<title>Which outputs move when one input changes</title>\n<rect class=\"paper\" width=\"100%\" "
          "height=\"100%\"/>\n");
  svg += svg_text(kMargin, 24, "class=\"title\"", "Which outputs move when one input changes");
  const std::string key[] = {"not", "moves", "the input that was changed"};
  double x = kMargin;
  for (const int state : {2, 1, 0}) {
    svg += cell(x, 37, state) + svg_text(x + kCell + 4, 46, "", key[state]);
    x += kCell + 22 + text_width(key[state], 12);
  }
  svg += svg_text(x, 46, "class=\"quiet\"",
                  str("each norm: ", sequences, " sequences, positions downwards, channels across"));
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double left = kMargin + static_cast<double>(at % per_row) * tile,
                 top = kTop + static_cast<double>(at / per_row) * high;
    svg += svg_text(left, top + 12, "", xml_escape(norms[i].name));
    for (std::size_t k = 0; k < norms[i].cells.size(); ++k) {
      const auto place = static_cast<std::int64_t>(k);
      const std::int64_t row = place / channels;
      svg += cell(
          left + static_cast<double>(row / positions) * (panel + kGap) + static_cast<double>(place % channels) * kCell,
          top + 19 + static_cast<double>(row % positions) * kCell, norms[i].cells[k]);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace normlab
