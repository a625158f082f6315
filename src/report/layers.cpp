#include "report/layers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/text.h"
#include "normlab/error.h"
#include "report/chart_axes.h"
#include "report/chart_text.h"
#include "report/compare.h"

namespace normlab {

namespace {

namespace fs = std::filesystem;

bool of_stream(std::string_view column) { return column.substr(0, 7) == "stream_" || column == "token_similarity"; }

bool is_size(std::string_view column) {
  const auto starts = [&](std::string_view with) { return column.substr(0, with.size()) == with; };
  return starts("stream_") || starts("branch_") || starts("grad_") || starts("update_");
}

// At most `most` of the steps, evenly, with the first and the last.
std::vector<double> some_of(const std::vector<double>& steps, std::size_t most) {
  if (steps.size() <= most) return steps;
  std::vector<double> some;
  for (std::size_t i = 0; i < most; ++i) some.push_back(steps[(i * (steps.size() - 1) + (most - 1) / 2) / (most - 1)]);
  return some;
}

struct Line {
  const LayerProfile* profile;
  double step;
  std::string name;
};

std::vector<Line> lines_of(const std::vector<LayerProfile>& profiles) {
  for (const LayerProfile& profile : profiles) {
    if (profile.steps.empty()) throw IoError(str(profile.rows.file, ": no rows: nothing was probed yet"));
  }
  std::vector<Line> lines;
  if (profiles.size() == 1) {
    const std::set<double> steps(profiles[0].steps.begin(), profiles[0].steps.end());
    for (const double step : some_of({steps.begin(), steps.end()}, 5))
      lines.push_back({&profiles[0], step, "step " + step_text(step)});
    return lines;
  }
  std::set<double> ends;
  for (const LayerProfile& profile : profiles) {
    const double last = *std::max_element(profile.steps.begin(), profile.steps.end());
    lines.push_back({&profile, last, profile.name});
    ends.insert(last);
  }
  for (Line& line : lines) {
    if (ends.size() > 1) line.name += ", step " + step_text(line.step);
  }
  return lines;
}

}  // namespace

LayerProfile load_layers(const fs::path& path, const std::string& name) {
  const fs::path file = fs::is_directory(path) ? path / "layers.csv" : path;
  if (!fs::exists(file))
    throw IoError(str(path.string(), ": no layers.csv: runs with [probe] every and `normlab probe` write it"));
  LayerProfile profile;
  profile.name = name;
  profile.rows = read_csv(file);
  const CsvTable& rows = profile.rows;
  const auto steps = rows.numbers("step"), layers = rows.numbers("layer");
  const auto column = std::find(rows.columns.begin(), rows.columns.end(), "sublayer");
  if (column == rows.columns.end())
    throw IoError(str(rows.file, ": no column 'sublayer'; its columns are ", join(rows.columns, ", ")));
  std::set<std::tuple<double, double, bool>> seen;
  for (std::size_t row = 0; row < rows.cells.size(); ++row) {
    const std::string_view sublayer = trim(rows.cells[row][static_cast<std::size_t>(column - rows.columns.begin())]);
    const auto fail = [&](const std::string& what) {
      throw IoError(str(rows.file, ":", rows.lines[row], ": row ", row + 1, ": ", what));
    };
    if (!steps[row] || !std::isfinite(*steps[row])) fail("column 'step': expected a number");
    if (!layers[row] || !(*layers[row] >= 0) || *layers[row] != std::floor(*layers[row]) || *layers[row] > 1e6)
      fail("column 'layer': expected a whole number from 0");
    if (sublayer != "attention" && sublayer != "ffn")
      fail(str("column 'sublayer': ", quote(sublayer), ": expected attention or ffn"));
    profile.steps.push_back(*steps[row]);
    profile.layers.push_back(*layers[row]);
    profile.ffn.push_back(sublayer == "ffn");
    if (!seen.insert({*steps[row], *layers[row], sublayer == "ffn"}).second)
      fail("this sub-layer of this step is there twice");
  }
  return profile;
}

std::vector<std::string> layer_quantities(const LayerProfile& profile) {
  std::vector<std::string> columns = profile.rows.columns;
  for (const char* place : {"step", "layer", "sublayer"}) std::erase(columns, place);
  return columns;
}

LayerTable layer_table(const std::vector<LayerProfile>& profiles, std::string_view column) {
  LayerTable table;
  table.column = column;
  const std::vector<Line> lines = lines_of(profiles);
  std::map<std::pair<double, bool>, std::vector<std::optional<double>>> rows;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const LayerProfile& profile = *lines[i].profile;
    const std::vector<std::string> quantities = layer_quantities(profile);
    if (std::find(quantities.begin(), quantities.end(), column) == quantities.end()) {
      throw IoError(str(profile.rows.file, ": no quantity ", quote(column), did_you_mean(column, quantities),
                        "; it has ", join(quantities, ", ")));
    }
    table.names.push_back(lines[i].name);
    const auto values = profile.rows.numbers(column);
    for (std::size_t row = 0; row < values.size(); ++row) {
      if (profile.steps[row] != lines[i].step) continue;
      auto& cells = rows[{profile.layers[row], profile.ffn[row]}];
      cells.resize(lines.size());
      cells[i] = values[row];
    }
  }
  for (auto& [place, values] : rows) table.rows.push_back({place.first, place.second, std::move(values)});
  return table;
}

Chart layers_chart(const LayerTable& table, int width, bool log, bool small) {
  Chart chart;
  chart.title = small ? table.column : table.column + " by layer";
  chart.x_label = "layer";
  chart.y_label = small ? "" : table.column;
  chart.width = width;
  chart.log_y = log || is_size(table.column);
  chart.legend = !small;
  // Where only one kind of sub-layer has the quantity, there is nothing to tell apart.
  std::set<bool> kinds;
  for (const LayerRow& row : table.rows) {
    if (std::any_of(row.values.begin(), row.values.end(), [](const auto& value) { return value.has_value(); }))
      kinds.insert(row.ffn);
  }
  const bool split = !of_stream(table.column) && kinds.size() == 2;
  for (std::size_t i = 0; i < table.names.size(); ++i) {
    for (const bool ffn : {false, true}) {
      if (!split && ffn) continue;
      ChartSeries series;
      series.name = table.names[i] + (!split ? "" : ffn ? ", feed-forward" : ", attention");
      series.style = split ? i % 7 + 7 * (2 * (i / 7) + (ffn ? 1 : 0)) : i;
      series.group = i;
      for (const LayerRow& row : table.rows) {
        if (!row.values[i] || (split && row.ffn != ffn)) continue;
        series.x.push_back(row.layer + (row.ffn ? 0.5 : 0));
        series.y.push_back(*row.values[i]);
      }
      chart.series.push_back(std::move(series));
    }
  }
  if (!small && kinds.count(true) > 0)
    chart.notes.push_back("The attention of layer n stands at n, its feed-forward sub-layer at n + ½.");
  return chart;
}

std::string layers_text(const LayerTable& table) {
  std::vector<std::vector<std::string>> rows = {{"layer", "sublayer"}};
  rows[0].insert(rows[0].end(), table.names.begin(), table.names.end());
  for (const LayerRow& row : table.rows) {
    rows.push_back({step_text(row.layer), row.ffn ? "ffn" : "attention"});
    for (const auto& value : row.values) rows.back().push_back(value ? short_number(*value) : "-");
  }
  return table.column + "\n" + aligned(rows, {true, false});
}

std::string layers_csv(const LayerTable& table) {
  std::vector<std::string> header = {"layer", "sublayer"};
  header.insert(header.end(), table.names.begin(), table.names.end());
  std::string text = csv_row(header);
  for (const LayerRow& row : table.rows) {
    std::vector<std::string> cells = {step_text(row.layer), row.ffn ? "ffn" : "attention"};
    for (const auto& value : row.values) cells.push_back(csv_cell(value));
    text += csv_row(cells);
  }
  return text;
}

}  // namespace normlab
