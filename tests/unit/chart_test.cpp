#include "report/chart.h"

#include <cmath>
#include <limits>
#include <regex>

#include "core/text.h"
#include "normlab/error.h"
#include "report/chart_axes.h"
#include "report/chart_svg.h"
#include "report/chart_text.h"
#include "test.h"

using namespace normlab;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) found.push_back((*at)[1]);
  return found;
}

std::vector<double> numbers_in(const std::string& text) {
  std::vector<double> numbers;
  for (const std::string& piece : matches(text, "(-?[0-9.]+(?:e[-+]?[0-9]+)?)"))
    numbers.push_back(parse_double(piece).value());
  return numbers;
}

// The curve of the first series in data units again, by way of what the image says about its axes.
std::vector<SvgPoint> curve_of(const std::string& svg, const std::string& kind) {
  const auto x = numbers_in(matches(svg, "data-x=\"([^\"]*)\"").at(0));
  const auto y = numbers_in(matches(svg, "data-y=\"([^\"]*)\"").at(0));
  const auto plot = numbers_in(matches(svg, "data-plot=\"([^\"]*)\"").at(0));
  const bool log = matches(svg, "data-log=\"([^\"]*)\"").at(0) == "1";
  const auto pixels =
      numbers_in(std::regex_replace(matches(svg, "class=\"" + kind + "\" d=\"([^\"]*)\"").at(0), std::regex("h0"), ""));
  std::vector<SvgPoint> points;
  for (std::size_t i = 0; i + 1 < pixels.size(); i += 2) {
    const double up = 1 - pixels[i + 1] / plot[3];
    points.push_back({x[0] + (x[1] - x[0]) * pixels[i] / plot[2],
                      log ? y[0] * std::pow(y[1] / y[0], up) : y[0] + (y[1] - y[0]) * up});
  }
  return points;
}

Chart chart_of(std::vector<double> x, std::vector<double> y, bool log = false) {
  Chart chart;
  chart.title = "title";
  chart.x_label = "step";
  chart.y_label = "loss";
  chart.log_y = log;
  chart.series = {{"a", std::move(x), std::move(y), {}, {}}};
  return chart;
}

std::string bad_coordinates(const std::string& svg) {
  return join(matches(svg, "(=\"[^\"]*(?:nan|inf)[^\"]*\")"), " ");
}

bool says(const std::string& svg, const std::string& text) {
  return svg.find(">" + text + "</text>") != std::string::npos;
}

}  // namespace

TEST_CASE("a curve goes through its values at the values of x") {
  for (const bool log : {false, true}) {
    CAPTURE(log);
    const std::string svg = chart_svg(chart_of({50, 70, 500}, {4.5, 2.5, 3}, log));
    const auto points = curve_of(svg, "line c0 d0");
    REQUIRE(points.size() == 3);
    CHECK(points[0].x == Approx(50).margin(0.05));
    CHECK(points[1].x == Approx(70).margin(0.05));
    CHECK(points[2].x == Approx(500).margin(0.05));
    CHECK(points[0].y == Approx(4.5).margin(0.001));
    CHECK(points[1].y == Approx(2.5).margin(0.001));
    CHECK(points[2].y == Approx(3).margin(0.001));
  }
}

TEST_CASE("values that are not finite are gaps and points between gaps are dots") {
  std::vector<double> x, y;
  for (int i = 1; i <= 50; ++i) x.push_back(i), y.push_back(i % 5 == 0 ? 1 : kNan);
  const std::string sparse = chart_svg(chart_of(x, y));
  CHECK(curve_of(sparse, "dot c0 d0").size() == 10);
  CHECK(matches(sparse, "(class=\"line c0 d0\")").size() == 1);  // the one of the legend
  const std::string gap = chart_svg(chart_of({1, 2, 3, 4, 5}, {1, 2, kInf, 2, 1}));
  CHECK(matches(matches(gap, "class=\"line c0 d0\" d=\"([^\"]*)\"").at(0), "(M)").size() == 2);
  CHECK(bad_coordinates(sparse) == "");
  CHECK(bad_coordinates(gap) == "");
}

TEST_CASE("no chart has a coordinate that is not finite") {
  const std::vector<std::vector<double>> data = {
      {},          {0},          {0, 0, 0},     {2.5, 2.5},      {1e30, 1e-30}, {1.7e308, -1.7e308, 1},
      {5e-324, 0}, {kNan, kNan}, {kInf, -kInf}, {kInf, 2, kNan}, {-1, -2},      {1, 1 + 1e-16, 1 + 3e-16}};
  for (const std::vector<double>& y : data) {
    for (const bool log : {false, true}) {
      CAPTURE(y, log);
      std::vector<double> x(y.size());
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i + 1);
      Chart chart = chart_of(x, y, log);
      chart.series[0].raw = y;
      chart.series[0].mark = ChartMark{1, "text"};
      chart.lines = {{2.5, "two and a half"}, {0, "zero"}, {kNan, "none"}, {kInf, "endless"}};
      CHECK(bad_coordinates(chart_svg(chart)) == "");
    }
  }
  Chart empty;
  CHECK(bad_coordinates(chart_svg(empty)) == "");
}

TEST_CASE("constant values lie in the middle of the plot") {
  for (const double value : {0.0, 2.5, 1e30}) {
    const std::string svg = chart_svg(chart_of({1, 2}, {value, value}));
    const auto plot = numbers_in(matches(svg, "data-plot=\"([^\"]*)\"").at(0));
    const auto pixels = numbers_in(matches(svg, "class=\"line c0 d0\" d=\"([^\"]*)\"").at(0));
    CHECK(pixels.at(1) == Approx(plot.at(3) / 2));
    CHECK(pixels.at(3) == Approx(plot.at(3) / 2));
  }
}

TEST_CASE("a logarithmic chart leaves out values of 0 and below and says so") {
  const std::string svg = chart_svg(chart_of({1, 2, 3, 4, 5}, {1, 0.1, 0.01, 0, -1}, true));
  const auto pixels = numbers_in(matches(svg, "class=\"line c0 d0\" d=\"([^\"]*)\"").at(0));
  REQUIRE(pixels.size() == 6);
  CHECK(pixels[3] - pixels[1] == Approx(pixels[5] - pixels[3]).margin(0.02));
  CHECK(says(svg, "2 values of 0 or below left out: the scale is logarithmic."));
  CHECK(says(svg, "0.01"));
  CHECK(says(svg, "0.1"));
  const std::string none = chart_svg(chart_of({1, 2}, {0, -1}, true));
  CHECK(says(none, "No value above 0, so the scale is linear."));
  CHECK(matches(none, "data-log=\"(.)\"").at(0) == "0");
}

TEST_CASE("a spike is cut with a note that says how many values and how large") {
  std::vector<double> x, y;
  for (int i = 1; i <= 100; ++i) x.push_back(i), y.push_back(5 - 0.02 * i);
  y[49] = 1e30;
  const std::string svg = chart_svg(chart_of(x, y));
  CHECK(says(svg, "Axis cut: 1 value above, up to 10³⁰."));
  CHECK(numbers_in(matches(svg, "data-y=\"([^\"]*)\"").at(0)).at(1) < 5.5);
  CHECK_FALSE(says(chart_svg(chart_of({1, 2, 3}, {5, 4, 3})), "Axis cut"));
}

TEST_CASE("a divergence is a cross at the last finite point and a word in the legend") {
  Chart chart = chart_of({10, 20, 30, 40}, {3, 4, kNan, kNan});
  chart.series[0].mark = ChartMark{30, "non-finite from step 30"};
  const std::string svg = chart_svg(chart);
  CHECK(says(svg, "a: non-finite from step 30"));
  const auto plot = numbers_in(matches(svg, "data-plot=\"([^\"]*)\"").at(0));
  const auto line = numbers_in(matches(svg, "class=\"line c0 d0\" d=\"([^\"]*)\"").at(0));
  const auto cross = numbers_in(matches(svg, "class=\"cross c0 d0\" d=\"([^\"]*)\"").at(0));
  CHECK(cross.at(0) + 4 == Approx(plot[0] + line[2]).margin(0.02));  // the arms reach 4 pixels out
  CHECK(cross.at(1) + 4 == Approx(plot[1] + line[3]).margin(0.02));
}

TEST_CASE("legend entries and reference labels neither overlap nor leave the image") {
  for (const int width : {400, 760}) {
    Chart chart = chart_of({1, 2}, {2, 5});
    chart.width = width;
    chart.series.clear();
    for (int i = 0; i < 14; ++i) {
      chart.series.push_back(
          {str("placement=sandwich,warmup=", i * 1000, i == 7 ? std::string(150, 'w') : std::string()),
           {1, 2},
           {2, 5},
           {},
           {}});
    }
    chart.lines = {{3.29, "entropy rate 3.29"}, {3.31, "context-free entropy 3.31"}, {3.3, "ln V = 3.30"}};
    const std::string svg = chart_svg(chart);
    struct Text {
      double x, y, right;
    };
    std::vector<Text> texts;
    const std::regex expression("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\"(?: class=\"quiet\")?>([^<]*)</text>");
    for (std::sregex_iterator at(svg.begin(), svg.end(), expression), end; at != end; ++at) {
      const double x = parse_double((*at)[1].str()).value(), y = parse_double((*at)[2].str()).value();
      texts.push_back({x, y, x + text_width((*at)[3].str(), 12)});
    }
    CHECK(texts.size() >= 14 + 3);
    const double height = parse_double(matches(svg, " height=\"([0-9.]+)\" role").at(0)).value();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      CHECK(texts[i].right <= width);
      CHECK(texts[i].y <= height);
      for (std::size_t j = 0; j < i; ++j) {
        const bool beside = texts[i].right <= texts[j].x || texts[j].right <= texts[i].x;
        CHECK((beside || std::abs(texts[i].y - texts[j].y) >= 12));
      }
    }
  }
}

TEST_CASE("a reference that would flatten the curves is named in a note instead") {
  Chart chart = chart_of({1, 2}, {2.0, 2.5});
  chart.lines = {{2.9, "near"}, {40, "far"}};
  const std::string svg = chart_svg(chart);
  CHECK(says(svg, "near"));
  CHECK(says(svg, "Outside the axis: far."));
}

TEST_CASE("fourteen series look different, and the same chart is the same bytes") {
  std::vector<std::string> classes;
  for (std::size_t i = 0; i < 14; ++i) classes.push_back(series_class(i));
  std::sort(classes.begin(), classes.end());
  CHECK(std::unique(classes.begin(), classes.end()) == classes.end());
  const Chart chart = chart_of({1, 2, 3}, {3, 2, 1});
  CHECK(chart_svg(chart) == chart_svg(chart));
}

TEST_CASE("a curve of very many points keeps its extremes and its ends") {
  std::vector<std::optional<SvgPoint>> points;
  for (int i = 0; i < 100000; ++i)
    points.push_back(SvgPoint{i * 0.005, i == 54321 ? 7.0 : i == 67890 ? 99.0 : 50.0 + i % 3});
  const std::string path = svg_curve(points, "k");
  CHECK(path.size() < 80000);
  CHECK(path.find("M0 50L") != std::string::npos);
  CHECK(path.find("L271.61 7L") != std::string::npos);   // 54321 * 0.005 = 271.605
  CHECK(path.find("L339.45 99L") != std::string::npos);  // 67890 * 0.005
  CHECK(path.find("L500 50\"") != std::string::npos);    // 99999 % 3 = 0
}

TEST_CASE("series of unequal length are refused by name") {
  CHECK_THROWS_WITH(chart_svg(chart_of({1, 2}, {1})), "chart: series 'a' has another number of x than of y");
}
TEST_CASE("texts are escaped and bytes that are no text are replaced") {
  CHECK(xml_escape("<a & \"b\">") == "&lt;a &amp; &quot;b&quot;&gt;");
  CHECK(xml_escape("\x01\xff é\n") == "\xef\xbf\xbd\xef\xbf\xbd é ");
  Chart chart = chart_of({1}, {1});
  chart.title = "</svg><script>";
  chart.series[0].name = "a<b>&c";
  const std::string svg = chart_svg(chart);
  CHECK(svg.find("<script>") == std::string::npos);
  CHECK(says(svg, "a&lt;b&gt;&amp;c"));
}
