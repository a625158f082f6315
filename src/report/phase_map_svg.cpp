// The image of a phase map. Colour says the final value, a sign and a border say the verdict; cells without a value on
// the scale are grey, which the scale is not.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "report/chart_axes.h"
#include "report/chart_svg.h"
#include "report/chart_text.h"
#include "report/colour_scale.h"
#include "report/phase_map.h"

namespace normlab {

namespace {

constexpr double kText = 12, kLine = 16;           // pixels per em, pixels from one line to the next
constexpr double kMargin = 16;                     // right of the grid
constexpr double kLeastCell = 40, kMostCell = 96;  // width; the height is the least one where labels allow it
constexpr double kKeyWidth = 30, kKeyHeight = 22;  // a cell of the legend
constexpr double kSlant = 0.70710678118654752;     // sine and cosine of the 45 degrees of slanted labels
constexpr std::size_t kMostLetters = 60;           // of a label; the whole value stands in the cell's title

struct Sign {
  const char* verdict;
  const char* path;  // around 0 0, at most 10 wide and 8 high; "" = a question mark as text
  const char* edge;  // dashes of the border; "" = no border
};
constexpr std::array<Sign, 6> kSigns = {{{"stable", "M-4.5 0l3 3.5l6 -7", ""},
                                         {"spiked", "M-5 3.5h3l2 -7.5l2 7.5h3", "4 2.5"},
                                         {"stalled", "M-5 0h10", "none"},
                                         {"diverged", "M-4 -4l8 8M-4 4l8 -8", "none"},
                                         {"interrupted", "M-2.5 -4v8M2.5 -4v8", "1.5 2.5"},
                                         {"-", "", ""}}};

const Sign& sign_of(const std::string& verdict) {
  const auto at = std::find_if(kSigns.begin(), kSigns.end(), [&](const Sign& sign) { return verdict == sign.verdict; });
  return at == kSigns.end() ? kSigns.back() : *at;
}

std::string short_label(const std::string& value) {
  const auto number = parse_double(value);
  if (number && value.size() > 8) return short_number(*number);
  return cut_text(value, kMostLetters);
}

const char* map_css() {
  return ".normlab-chart .white{fill:#fff}.normlab-chart .black{fill:#000}\n"
         ".normlab-chart text.count{font-size:10px}\n"
         ".normlab-chart .sign,.normlab-chart .edge{fill:none;stroke-width:1.8;stroke:#111}\n"
         ".normlab-chart .sign{stroke-linecap:round;stroke-linejoin:round}\n"
         ".normlab-chart .white.sign,.normlab-chart .white.edge{stroke:#fff;fill:none}\n"
         ".normlab-chart .black.sign,.normlab-chart .black.edge{stroke:#000;fill:none}\n"
         ".normlab-chart .off{fill:#dcdcdc}\n"
         ".normlab-chart text.ink{fill:#111}\n"
         ".normlab-chart .hatch{stroke:#b4b4b4;stroke-width:1;fill:none}\n"
         ".normlab-chart .none{fill:none;stroke:#b4b4b4;stroke-width:1}\n"
         "@media (prefers-color-scheme:dark){\n"
         ".normlab-chart .ink.sign,.normlab-chart .ink.edge{stroke:#f2f2f2}\n"
         ".normlab-chart .off{fill:#4a4f55}\n"
         ".normlab-chart text.ink{fill:#f2f2f2}\n"
         ".normlab-chart .hatch,.normlab-chart .none{stroke:#5c636b}\n"
         "}\n";
}

class MapWriter {
 public:
  MapWriter(const PhaseMap& map, const MapOptions& options) : map_(map), options_(options), notes_(map.notes) {}

  std::string write() {
    choose_scale();
    choose_layout();
    std::string body = title() + labels() + cells();
    body += legend();
    for (const std::string& note : notes_) {
      for (const std::string& part : wrap_text(note, kText, text_right_ - 12)) {
        below_ += kLine;
        body += svg_text(12, below_, "class=\"quiet\"", part);
      }
    }
    const std::string width = svg_number(width_), height = svg_number(below_ + 10);
    return str("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"normlab-chart\" viewBox=\"0 0 ", width, " ", height,
               "\" width=\"", width, "\" height=\"", height, "\" role=\"img\" aria-label=\"", xml_escape(title_text()),
               "\">\n<style>\n", chart_css(), map_css(),
               "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n", body, "</svg>\n");
  }

 private:
  std::string title_text() const {
    const std::string metric = metric_title(map_.metric);
    const std::string by = map_.y_key.empty() ? map_.x_key : str(map_.x_key, " and ", map_.y_key);
    return str(metric, metric == map_.metric ? ", final value, by " : " at the end, by ", by);
  }

  void choose_scale() {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const MapCell& cell : map_.cells) {
      if (cell.on_scale()) low = std::min(low, *cell.value), high = std::max(high, *cell.value);
    }
    has_scale_ = low <= high;
    if (!has_scale_) return;
    const bool log = options_.log && low > 0;
    if (options_.log && !log) notes_.push_back("A value is not above 0, so the colours are linear.");
    scale_ = make_axis(low, high, 0, log, 7);
  }

  Colour colour(const MapCell& cell) const { return scale_colour(std::clamp(scale_.place(*cell.value), 0.0, 1.0)); }

  bool counted() const {  // whether some cell has several runs: then all say how many
    return std::any_of(map_.cells.begin(), map_.cells.end(), [](const MapCell& cell) { return cell.runs.size() > 1; });
  }
  std::string count_text(const MapCell& cell) const { return str(cell.agree, "/", cell.runs.size()); }
  std::string value_text(const MapCell& cell) const { return cell.value ? map_number(map_, *cell.value) : ""; }

  void choose_layout() {
    const double columns = static_cast<double>(map_.xs.size());
    double least = kLeastCell, x_width = 0, y_width = 0;
    for (const MapCell& cell : map_.cells) {
      least = std::max(least, text_width(value_text(cell), kText) + 10);
      if (counted()) least = std::max(least, text_width(count_text(cell), 10) + 26);
    }
    for (const std::string& x : map_.xs) x_width = std::max(x_width, text_width(short_label(x), kText));
    const double most_label = options_.width < 600 ? 90 : 160;
    for (const std::size_t y : map_.rows()) {
      y_labels_.push_back(wrap_text(short_label(map_.ys[y]), kText, most_label));
      for (const std::string& line : y_labels_.back()) y_width = std::max(y_width, text_width(line, kText));
      row_height_ = std::max(row_height_, 8 + kLine * static_cast<double>(y_labels_.back().size()));
    }
    left_ = map_.y_key.empty() ? kMargin : y_width + 44;
    const auto fitting = [&] {
      return std::clamp(std::floor((options_.width - left_ - kMargin) / columns), least, std::max(least, kMostCell));
    };
    cell_ = fitting();
    slanted_ = x_width + 6 > cell_;
    for (std::size_t x = 0; slanted_ && x < map_.xs.size(); ++x) {
      const double start = text_width(short_label(map_.xs[x]), kText) * kSlant;
      left_ = std::max(left_, start + 8 - cell_ * (static_cast<double>(x) + 0.5));
    }
    cell_ = fitting();
    x_height_ = slanted_ ? x_width * kSlant + 20 : 22;
    width_ = std::max(left_ + columns * cell_ + kMargin, std::min<double>(options_.width, 480));
    // Text keeps to the width wished for, so that a wide grid can be scrolled and the rest be read.
    text_right_ = std::min<double>(width_, options_.width) - 12;
    title_ = wrap_text(title_text(), 15 * 1.1, text_right_ - 12);  // bold runs wider
    top_ = 16 + 20 * static_cast<double>(title_.size());
    below_ = top_ + row_height_ * static_cast<double>(map_.ys.size()) + x_height_ + 18;
    if (!map_.y_key.empty()) below_ = std::max(below_, top_ + text_width(map_.y_key, kText) + 12);
  }

  std::string title() const {
    std::string out;
    for (std::size_t i = 0; i < title_.size(); ++i)
      out += svg_text(12, 22 + 20 * static_cast<double>(i), "class=\"title\"", title_[i]);
    return out;
  }

  std::string labels() const {
    std::string out;
    const double grid_width = cell_ * static_cast<double>(map_.xs.size());
    const double grid_height = row_height_ * static_cast<double>(map_.ys.size());
    const double bottom = top_ + grid_height;
    for (std::size_t x = 0; x < map_.xs.size(); ++x) {
      const double middle = left_ + cell_ * (static_cast<double>(x) + 0.5);
      const std::string label = short_label(map_.xs[x]);
      if (slanted_) {
        const std::string at = str(svg_number(middle + 4), " ", svg_number(bottom + 14));
        out += svg_text(middle + 4, bottom + 14, str("text-anchor=\"end\" transform=\"rotate(-45 ", at, ")\""), label);
      } else {
        out += svg_text(middle, bottom + 17, "text-anchor=\"middle\"", label);
      }
    }
    out += svg_text(left_ + grid_width / 2, bottom + x_height_ + 12, "text-anchor=\"middle\"", map_.x_key);
    if (map_.y_key.empty()) return out;
    for (std::size_t row = 0; row < y_labels_.size(); ++row) {
      const auto lines = static_cast<double>(y_labels_[row].size());
      double y = top_ + row_height_ * (static_cast<double>(row) + 0.5) - kLine / 2 * (lines - 1) + 4;
      for (const std::string& line : y_labels_[row]) {
        out += svg_text(left_ - 8, y, "text-anchor=\"end\"", line);
        y += kLine;
      }
    }
    // Beside a short grid there is not the room to turn the key's name.
    const double middle = top_ + std::max(grid_height, text_width(map_.y_key, kText)) / 2;  // never into the title
    return out + svg_text(20, middle,
                          str("text-anchor=\"middle\" transform=\"rotate(-90 20 ", svg_number(middle), ")\""),
                          map_.y_key);
  }

  std::string cells() const {
    std::string out;
    double top = top_;
    for (const std::size_t y : map_.rows()) {
      for (std::size_t x = 0; x < map_.xs.size(); ++x) {
        const MapCell& cell = map_.at(x, y);
        out += str("<g class=\"cell\"><title>", xml_escape(cell_title(cell, x, y)), "</title>\n",
                   box(cell, left_ + cell_ * static_cast<double>(x), top, cell_, row_height_), "</g>\n");
      }
      top += row_height_;
    }
    return out;
  }

  std::string cell_title(const MapCell& cell, std::size_t x, std::size_t y) const {
    std::string text = str(map_.x_key, " = ", map_.xs[x]);
    if (!map_.y_key.empty()) text += str(", ", map_.y_key, " = ", map_.ys[y]);
    if (cell.runs.empty()) return text + ": no run";
    text += str(": ", map_.metric, " ", table_number(cell.value), ", ", cell.verdict);
    if (cell.runs.size() > 1) text += " " + count_text(cell);
    return str(text, "; ", join(cell.runs, ", "));
  }

  // A cell with its left upper corner at x, y: a gap of one pixel, the colour, the border, the sign, the number.
  std::string box(const MapCell& cell, double x, double y, double width, double height) const {
    if (cell.runs.empty()) return hatched(x, y, width, height);
    const bool on_scale = cell.on_scale();
    const std::string ink = !on_scale ? "ink" : takes_white_text(colour(cell)) ? "white" : "black";
    std::string out = rectangle(x + 0.5, y + 0.5, width - 1, height - 1,
                                on_scale ? str("fill=\"", colour(cell).hex(), "\"") : "class=\"off\"");
    const Sign& sign = sign_of(cell.verdict);
    if (*sign.edge != '\0')
      out += rectangle(x + 2.5, y + 2.5, width - 5, height - 5,
                       str("class=\"edge ", ink, "\" stroke-dasharray=\"", sign.edge, "\""));
    const std::string value = value_text(cell), count = counted() ? count_text(cell) : "";
    const double middle = x + width / 2, sign_y = value.empty() ? y + height / 2 : y + height / 2 - 8;
    const double aside = count.empty() ? 0 : text_width(count, 10) / 2 + 1;
    out += sign_at(sign, middle - aside, sign_y, ink);
    if (!count.empty()) out += svg_text(middle - aside + 9, sign_y + 3.5, str("class=\"count ", ink, "\""), count);
    if (!value.empty())
      out += svg_text(middle, y + height / 2 + 12.5, str("class=\"", ink, "\" text-anchor=\"middle\""), value);
    return out;
  }

  static std::string rectangle(double x, double y, double width, double height, const std::string& attributes) {
    return str("<rect x=\"", svg_number(x), "\" y=\"", svg_number(y), "\" width=\"", svg_number(width), "\" height=\"",
               svg_number(height), "\" ", attributes, "/>\n");
  }

  static std::string sign_at(const Sign& sign, double x, double y, const std::string& ink) {
    if (*sign.path == '\0') return svg_text(x, y + 4, str("class=\"", ink, "\" text-anchor=\"middle\""), "?");
    return str("<path class=\"sign ", ink, "\" transform=\"translate(", svg_number(x), " ", svg_number(y), ")\" d=\"",
               sign.path, "\"/>\n");
  }

  // Lines from lower left to upper right, 8 pixels apart.
  static std::string hatched(double x, double y, double width, double height) {
    std::string lines;
    for (double at = 8; at < width + height; at += 8) {
      const double x1 = std::max(0.0, at - height), x2 = std::min(width, at);
      lines += str("M", svg_number(x + x1), " ", svg_number(y + at - x1), "L", svg_number(x + x2), " ",
                   svg_number(y + at - x2));
    }
    return str("<path class=\"hatch\" d=\"", lines, "\"/>\n") +
           rectangle(x + 0.5, y + 0.5, width - 1, height - 1, "class=\"none\"");
  }

  std::string legend() {
    std::string out;
    if (has_scale_) {
      const double bar = std::min(300.0, text_right_ - 48);
      const std::string what =
          map_.metric == "loss" || map_.metric == "val_loss" ? map_.metric + ", nats per token" : map_.metric;
      below_ += 24;
      out += svg_text(12, below_, "", str("Colour: final ", what, scale_.log ? ", logarithmic" : ""));
      below_ += 8;
      constexpr int kSteps = 60;
      for (int i = 0; i < kSteps; ++i) {
        const double step = bar / kSteps;  // the pieces overlap, so that no gap shines through
        out += rectangle(24 + step * i, below_, i + 1 < kSteps ? step + 0.5 : step, 14,
                         str("fill=\"", scale_colour((i + 0.5) / kSteps).hex(), "\""));
      }
      for (std::size_t i = 0; i < scale_.ticks.size(); ++i) {
        const double x = 24 + bar * scale_.place(scale_.ticks[i]);
        out += svg_line(x, below_ + 14, x, below_ + 18, "axis");
        out += svg_text(x, below_ + 30, "text-anchor=\"middle\"", scale_.labels[i]);
      }
      below_ += 30;
    }
    below_ += 14;
    double x = 12;
    const auto place = [&](const std::string& name) {
      const double needed = kKeyWidth + 8 + text_width(name, kText);
      if (x > 12 && x + needed > text_right_) x = 12, below_ += kKeyHeight + 6;
      const double at = x;
      x += needed + 18;
      out += svg_text(at + kKeyWidth + 8, below_ + kKeyHeight / 2 + 4, "", name);
      return at;
    };
    for (const Sign& sign : kSigns) {
      if (!any([&](const MapCell& cell) { return !cell.runs.empty() && &sign_of(cell.verdict) == &sign; })) continue;
      const double at = place(std::string_view(sign.verdict) == "-" ? "no verdict known" : sign.verdict);
      const bool off = std::string_view(sign.verdict) == "diverged";  // shown as in the grid: outside the scale
      out += rectangle(at + 0.5, below_ + 0.5, kKeyWidth - 1, kKeyHeight - 1, off ? "class=\"off\"" : "class=\"none\"");
      if (*sign.edge != '\0')
        out += rectangle(at + 2.5, below_ + 2.5, kKeyWidth - 5, kKeyHeight - 5,
                         str("class=\"edge ink\" stroke-dasharray=\"", sign.edge, "\""));
      out += sign_at(sign, at + kKeyWidth / 2, below_ + kKeyHeight / 2, "ink");
    }
    if (any([](const MapCell& cell) { return !cell.runs.empty() && !cell.on_scale(); })) {
      const double at = place("outside the scale");
      out += rectangle(at + 0.5, below_ + 0.5, kKeyWidth - 1, kKeyHeight - 1, "class=\"off\"");
    }
    if (any([](const MapCell& cell) { return cell.runs.empty(); })) {
      const double at = place("no run");
      out += hatched(at, below_, kKeyWidth, kKeyHeight);
    }
    below_ += kKeyHeight + 6;
    return out;
  }

  template <class Test>
  bool any(const Test& test) const {
    return std::any_of(map_.cells.begin(), map_.cells.end(), test);
  }

  const PhaseMap& map_;
  const MapOptions& options_;
  std::vector<std::string> notes_, title_;
  bool has_scale_ = false, slanted_ = false;
  Axis scale_;
  std::vector<std::vector<std::string>> y_labels_;  // of the rows from top to bottom, in lines
  double left_ = 0, top_ = 0;                       // of the grid
  double width_ = 0, text_right_ = 0;               // of the image; where text ends
  double cell_ = 0, row_height_ = kLeastCell, x_height_ = 0, below_ = 0;
};

}  // namespace

std::string map_svg(const PhaseMap& map, const MapOptions& options) { return MapWriter(map, options).write(); }

}  // namespace normlab
