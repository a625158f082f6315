// A line chart as the text of an SVG image. The same input gives the same bytes; nothing outside the image is needed.
// It reads well on light and dark screens (prefers-color-scheme). Colours are those of Okabe and Ito (2008), which
// people with the common colour deficiencies tell apart, slightly adapted to each background; from the eighth series on
// they come again with dashes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace normlab {

struct ChartMark {
  double x = 0;      // a cross is drawn at the last finite point up to here
  std::string text;  // said in the legend: "non-finite from step 30"
};

struct ChartSeries {
  std::string name;
  std::vector<double> x;    // finite, ascending
  std::vector<double> y;    // one per x; what is not finite is a gap, a point between two gaps is a dot
  std::vector<double> raw;  // empty, or one per x: drawn faint behind
  std::optional<ChartMark> mark;
  std::vector<double> band = {};  // empty, or one per x: half the height of a band around y, nan where there is none
  std::optional<std::size_t> style = {};  // its series_class; without, its own number
  std::optional<std::size_t> group = {};  // series of one group hide together on a page; without, its own number
};

struct ChartLine {
  double value = 0;
  std::string label;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ChartSeries> series;
  std::vector<std::string> notes;  // lines of text below
  std::vector<ChartLine> lines;    // horizontal references, labelled at the right
  bool log_y = false;              // values <= 0 are left out with a note; falls back to linear where there is no other
  int width = 760;                 // pixels; the height follows
  bool legend = true;
};

// Class of series i: with it, <path class="..."> inside an element of class "normlab-chart" has the colour and dashes
// of the curve.
std::string series_class(std::size_t i);

// The rules behind these classes; part of every chart, here for pages that show keys of their own.
std::string chart_css();

std::string chart_svg(const Chart& chart);

}  // namespace normlab
