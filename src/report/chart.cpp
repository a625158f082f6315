#include "report/chart.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/text.h"
#include "normlab/error.h"
#include "report/chart_axes.h"
#include "report/chart_svg.h"
#include "report/chart_text.h"

namespace normlab {

namespace {

constexpr double kText = 12, kTitle = 15;  // pixels per em
constexpr double kLine = 16;               // pixels from one line of text to the next
constexpr double kSample = 26;             // length of a key's line

struct Box {
  double left = 0, top = 0, width = 0, height = 0;
  double right() const { return left + width; }
  double bottom() const { return top + height; }
};

class ChartWriter {
 public:
  explicit ChartWriter(const Chart& chart) : chart_(chart), log_(chart.log_y), notes_(chart.notes) {}

  std::string write() {
    choose_axes();
    choose_layout();
    std::string legend_and_notes = legend();
    legend_and_notes += notes();
    const std::string body = title() + grid() + references() + curves() + crosses() + legend_and_notes;
    const std::string size = str(svg_number(chart_.width), " ", svg_number(below_ + 8));
    return str("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"normlab-chart\" viewBox=\"0 0 ", size, "\" width=\"",
               chart_.width, "\" height=\"", svg_number(below_ + 8), "\" role=\"img\" aria-label=\"",
               xml_escape(chart_.title), "\" data-x=\"", x_.low, " ", x_.high, "\" data-y=\"", y_.low, " ", y_.high,
               "\" data-log=\"", log_ ? 1 : 0, "\" data-plot=\"", svg_number(plot_.left), " ", svg_number(plot_.top),
               " ", svg_number(plot_.width), " ", svg_number(plot_.height), "\" data-unit=\"",
               xml_escape(chart_.x_label), "\">\n<style>\n", chart_css(),
               "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n", body, "</svg>\n");
  }

 private:
  std::string style(std::size_t i) const { return series_class(chart_.series[i].style.value_or(i)); }
  std::size_t group(std::size_t i) const { return chart_.series[i].group.value_or(i); }
  bool drawable(double value) const { return std::isfinite(value) && !(log_ && value <= 0); }
  double scaled(double value) const { return log_ ? std::log10(value) : value; }
  double unscaled(double value) const { return log_ ? std::pow(10.0, value) : value; }

  void choose_axes() {
    std::vector<double> all, ends;
    double first = std::numeric_limits<double>::infinity(), last = -first;
    for (const ChartSeries& series : chart_.series) {
      if (series.y.size() != series.x.size() || (!series.raw.empty() && series.raw.size() != series.x.size()) ||
          (!series.band.empty() && series.band.size() != series.x.size())) {
        throw DataError(str("chart: series ", quote(series.name), " has another number of x than of y"));
      }
      for (const auto* values : {&series.y, &series.raw}) {
        std::copy_if(values->begin(), values->end(), std::back_inserter(all),
                     [](double y) { return std::isfinite(y); });
      }
      for (const auto& [low, high] : band_of(series)) {
        if (low < high) ends.insert(ends.end(), {low, high});
      }
      for (const double x : series.x) first = std::min(first, x), last = std::max(last, x);
    }
    if (log_ && std::none_of(all.begin(), all.end(), [](double y) { return y > 0; })) {
      log_ = false;
      if (!all.empty()) notes_.push_back("No value above 0, so the scale is linear.");
    }
    const auto dropped = std::erase_if(all, [&](double y) { return !drawable(y); });
    if (dropped > 0)
      notes_.push_back(
          str(dropped, dropped == 1 ? " value" : " values", " of 0 or below left out: the scale is logarithmic."));

    bool whole = true;
    for (const ChartSeries& series : chart_.series) {
      for (const double x : series.x) whole = whole && x == std::floor(x);
    }
    // The lower end of a band is no value: on a logarithmic axis it may lie at 0 or below.
    std::copy_if(ends.begin(), ends.end(), std::back_inserter(all), [&](double y) { return drawable(y); });
    empty_ = all.empty();
    x_ = first <= last
             ? make_axis(first >= 0 && first < 0.1 * last ? 0 : first, last, 0.01, false, chart_.width / 90, whole)
             : make_axis(0, 1, 0, false, 5);
    if (empty_) {
      y_ = Axis();
      return;
    }
    for (double& y : all) y = scaled(y);
    choose_y_range(visible_range(std::move(all)));
  }

  // References widen the range where that leaves the curves at least a third of the height.
  void choose_y_range(const VisibleRange& range) {
    double low = range.low, high = range.high;
    for (const ChartLine& line : chart_.lines) {
      if (!drawable(line.value)) continue;
      const double value = scaled(line.value);
      const double room = range.high > range.low ? 3 * (range.high - range.low) : std::max(1.0, std::abs(range.high));
      const double new_low = std::min(low, value), new_high = std::max(high, value);
      if (new_high - new_low <= room) low = new_low, high = new_high;
    }
    y_ = make_axis(unscaled(low), unscaled(high), 0.04, log_, chart_.width < 600 ? 6 : 8);
    note_what_is_cut();
    for (const ChartLine& line : chart_.lines) {
      const double at = drawable(line.value) ? y_.place(line.value) : -1;
      if (at >= 0 && at <= 1) {
        shown_lines_.push_back(line);
      } else {
        notes_.push_back(str("Outside the axis: ", line.label, "."));
      }
    }
  }

  void note_what_is_cut() {
    std::int64_t above = 0, below = 0;
    double highest = y_.high, lowest = y_.low;
    for (const ChartSeries& series : chart_.series) {
      for (const double y : series.raw.empty() ? series.y : series.raw) {
        if (!drawable(y)) continue;
        above += y > y_.high ? 1 : 0;
        below += y < y_.low ? 1 : 0;
        highest = std::max(highest, y);
        lowest = std::min(lowest, y);
      }
    }
    const auto values = [](std::int64_t count) { return str(count, count == 1 ? " value" : " values"); };
    if (above > 0) notes_.push_back(str("Axis cut: ", values(above), " above, up to ", short_number(highest), "."));
    if (below > 0) notes_.push_back(str("Axis cut: ", values(below), " below, down to ", short_number(lowest), "."));
  }

  void choose_layout() {
    double tick_width = 0;
    for (const std::string& label : y_.labels) tick_width = std::max(tick_width, text_width(label, kText));
    plot_.left = tick_width + (chart_.y_label.empty() ? 16 : 36);

    double label_width = 0, label_height = 0;
    for (const ChartLine& line : shown_lines_) {
      line_labels_.push_back(wrap_text(line.label, kText, chart_.width < 600 ? 88 : 130));
      for (const std::string& part : line_labels_.back()) label_width = std::max(label_width, text_width(part, kText));
      label_height += 4 + kLine * static_cast<double>(line_labels_.back().size());
    }
    plot_.width = std::max(80.0, chart_.width - plot_.left - (shown_lines_.empty() ? 24 : label_width + 24));
    title_ = wrap_text(chart_.title, kTitle * 1.1, chart_.width - plot_.left - 12);  // bold runs wider
    plot_.top = chart_.title.empty() ? 16 : 20 + 20 * static_cast<double>(title_.size());
    plot_.height = std::max(std::round(std::clamp(0.6 * plot_.width, 220.0, 380.0)), label_height);
    below_ = plot_.bottom() + 24 + (chart_.x_label.empty() ? 0 : 20);
  }

  SvgPoint place(double x, double y) const {
    // Far outside, renderers lose precision; the frame hides what lies there anyway.
    const double down = 1 - y_.place(y);
    return {x_.place(x) * plot_.width, std::clamp(down, -1.0, 2.0) * plot_.height};
  }

  std::string title() const {
    std::string out;
    for (std::size_t i = 0; i < title_.size(); ++i) {
      out += svg_text(plot_.left, 24 + 20 * static_cast<double>(i), "class=\"title\"", title_[i]);
    }
    return out;
  }

  std::string grid() const {
    std::string out;
    for (std::size_t i = 0; i < y_.ticks.size(); ++i) {
      const double y = plot_.top + (1 - y_.place(y_.ticks[i])) * plot_.height;
      out += svg_line(plot_.left, y, plot_.right(), y, "grid");
      out += svg_text(plot_.left - 7, y + 4, "text-anchor=\"end\"", y_.labels[i]);
    }
    for (std::size_t i = 0; i < x_.ticks.size(); ++i) {
      const double x = plot_.left + x_.place(x_.ticks[i]) * plot_.width;
      out += svg_line(x, plot_.top, x, plot_.bottom(), "grid");
      out += svg_text(x, plot_.bottom() + 17, "text-anchor=\"middle\"", x_.labels[i]);
    }
    out += str("<path class=\"axis\" d=\"M", svg_number(plot_.left), " ", svg_number(plot_.top), "V",
               svg_number(plot_.bottom()), "H", svg_number(plot_.right()), "\" fill=\"none\"/>\n");
    const double middle = plot_.top + plot_.height / 2;
    if (!chart_.x_label.empty()) {
      out += svg_text(plot_.left + plot_.width / 2, plot_.bottom() + 37, "text-anchor=\"middle\"", chart_.x_label);
    }
    if (!chart_.y_label.empty()) {
      out += svg_text(16, middle, str("text-anchor=\"middle\" transform=\"rotate(-90 16 ", svg_number(middle), ")\""),
                      chart_.y_label);
    }
    if (empty_) {
      out += svg_text(plot_.left + plot_.width / 2, middle, "text-anchor=\"middle\"", "no finite values");
    }
    return out;
  }

  std::string references() const {
    std::vector<double> wanted, heights;
    for (std::size_t i = 0; i < shown_lines_.size(); ++i) {
      wanted.push_back(plot_.top + (1 - y_.place(shown_lines_[i].value)) * plot_.height);
      heights.push_back(4 + kLine * static_cast<double>(line_labels_[i].size()));
    }
    const std::vector<double> centres = spread_labels(wanted, heights, plot_.top, plot_.bottom());
    std::string out;
    for (std::size_t i = 0; i < shown_lines_.size(); ++i) {
      out += svg_line(plot_.left, wanted[i], plot_.right(), wanted[i], "reference");
      out += svg_line(plot_.right() + 2, wanted[i], plot_.right() + 9, centres[i], "leader");
      double y = centres[i] - kLine / 2 * static_cast<double>(line_labels_[i].size() - 1) + 4;
      for (const std::string& part : line_labels_[i]) {
        out += svg_text(plot_.right() + 12, y, "class=\"quiet\"", part);
        y += kLine;
      }
    }
    return out;
  }

  std::string curve(const ChartSeries& series, const std::vector<double>& ys, const std::string& kind) const {
    std::vector<std::optional<SvgPoint>> points(ys.size());
    for (std::size_t i = 0; i < ys.size(); ++i) {
      if (drawable(ys[i])) points[i] = place(series.x[i], ys[i]);
    }
    return svg_curve(points, kind);
  }

  // Lower and upper end of the band at every x; nan where there is none.
  static std::vector<std::pair<double, double>> band_of(const ChartSeries& series) {
    std::vector<std::pair<double, double>> ends;
    for (std::size_t i = 0; i < series.band.size(); ++i) {
      ends.emplace_back(series.y[i] - series.band[i], series.y[i] + series.band[i]);
    }
    return ends;
  }

  std::string band(const ChartSeries& series, const std::string& kind) const {
    std::vector<std::optional<SvgPoint>> upper(series.band.size()), lower(series.band.size());
    const std::vector<std::pair<double, double>> ends = band_of(series);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const auto& [low, high] = ends[i];
      if (!std::isfinite(low) || !drawable(high)) continue;
      upper[i] = place(series.x[i], high);
      lower[i] = place(series.x[i], drawable(low) ? low : y_.low);
    }
    return svg_band(upper, lower, kind);
  }

  // A nested image clips without an id, of which a page with several charts would need distinct ones.
  std::string curves() const {
    std::string faint, strong;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const ChartSeries& series = chart_.series[i];
      const std::string open =
          str("<g class=\"series\" data-series=\"", group(i), "\"><title>", xml_escape(series.name), "</title>\n");
      if (!series.band.empty()) {
        faint += str("<g class=\"series\" data-series=\"", group(i), "\">\n", band(series, style(i)), "</g>\n");
      }
      if (!series.raw.empty()) faint += open + curve(series, series.raw, "raw " + style(i)) + "</g>\n";
      strong += open + curve(series, series.y, style(i)) + "</g>\n";
    }
    return str("<svg x=\"", svg_number(plot_.left), "\" y=\"", svg_number(plot_.top), "\" width=\"",
               svg_number(plot_.width), "\" height=\"", svg_number(plot_.height), "\" overflow=\"hidden\">\n", faint,
               strong, "</svg>\n");
  }

  std::string crosses() const {
    std::string out;
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      const ChartSeries& series = chart_.series[i];
      if (!series.mark) continue;
      std::optional<SvgPoint> last;
      for (std::size_t at = 0; at < series.x.size(); ++at) {
        if (series.x[at] <= series.mark->x && drawable(series.y[at])) last = place(series.x[at], series.y[at]);
      }
      if (!last) continue;
      const double y = plot_.top + std::clamp(last->y, 0.0, plot_.height);
      out += str("<g class=\"series\" data-series=\"", group(i), "\">", svg_cross(plot_.left + last->x, y, style(i)),
                 "</g>\n");
    }
    return out;
  }

  double text_left() const { return chart_.width < 600 ? 12 : plot_.left; }

  // Keys below the plot, in as many columns as fit; long names take several lines.
  std::string legend() {
    if (chart_.series.empty() || !chart_.legend) return {};
    const double room = chart_.width - 12 - text_left();
    std::vector<std::vector<std::string>> names;
    double widest = 0;
    for (const ChartSeries& series : chart_.series) {
      const std::string name = series.mark ? str(series.name, ": ", series.mark->text) : series.name;
      names.push_back(wrap_text(name, kText, room - kSample - 8));
      for (const std::string& part : names.back()) widest = std::max(widest, kSample + 26 + text_width(part, kText));
    }
    const auto columns = std::max<std::size_t>(1, static_cast<std::size_t>((room + 18) / widest));
    below_ += 16;
    std::string out;
    for (std::size_t first = 0; first < names.size(); first += columns) {
      std::size_t lines = 1;
      for (std::size_t i = first; i < std::min(first + columns, names.size()); ++i) {
        out += key(i, names[i], text_left() + static_cast<double>(i - first) * widest, below_);
        lines = std::max(lines, names[i].size());
      }
      below_ += 3 + kLine * static_cast<double>(lines);
    }
    return out;
  }

  std::string key(std::size_t i, const std::vector<std::string>& name, double x, double y) const {
    std::string out = str("<g class=\"key\" data-series=\"", group(i), "\">\n");
    out += svg_line(x, y, x + kSample, y, "line " + style(i));
    if (chart_.series[i].mark) out += svg_cross(x + kSample / 2, y, style(i));
    for (std::size_t part = 0; part < name.size(); ++part) {
      out += svg_text(x + kSample + 8, y + 4 + kLine * static_cast<double>(part), "", name[part]);
    }
    return out + "</g>\n";
  }

  std::string notes() {
    std::string out;
    for (const std::string& note : notes_) {
      for (const std::string& part : wrap_text(note, kText, chart_.width - 12 - text_left())) {
        below_ += kLine;
        out += svg_text(text_left(), below_, "class=\"quiet\"", part);
      }
    }
    return out;
  }

  const Chart& chart_;
  bool log_;
  bool empty_ = false;  // nothing to draw
  Axis x_, y_;
  Box plot_;
  double below_ = 0;  // how far down things have been placed
  std::vector<std::string> title_, notes_;
  std::vector<ChartLine> shown_lines_;
  std::vector<std::vector<std::string>> line_labels_;
};

}  // namespace

std::string chart_svg(const Chart& chart) { return ChartWriter(chart).write(); }

}  // namespace normlab
