// What probes saw, layer by layer: the columns of layers.csv as charts over the depth of the model. README, "Layers",
// says what the columns are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/chart.h"
#include "report/csv.h"

namespace normlab {

struct LayerProfile {
  std::string name;  // of the run
  CsvTable rows;
  std::vector<double> steps;   // of each row
  std::vector<double> layers;  // of each row, from 0
  std::vector<bool> ffn;       // of each row: the feed-forward sub-layer, else attention
};

// `path`: a directory with a layers.csv, or such a file. IoError where there is none, where one of the columns step,
// layer, sublayer is missing or no such thing, where a sub-layer of a step is there twice.
LayerProfile load_layers(const std::filesystem::path& path, const std::string& name);

// The columns that hold a quantity.
std::vector<std::string> layer_quantities(const LayerProfile& profile);

// One quantity: of one profile at up to five of its steps, the first and the last among them; of several each at its
// own last step. IoError for a column that a profile does not have,
// and for a profile without rows.
struct LayerRow {
  double layer = 0;
  bool ffn = false;
  std::vector<std::optional<double>> values;  // one per name
};
struct LayerTable {
  std::string column;
  std::vector<std::string> names;  // "step 100", or those of the runs
  std::vector<LayerRow> rows;      // by layer, attention first
};
LayerTable layer_table(const std::vector<LayerProfile>& profiles, std::string_view column);

// The first sub-layer of layer n stands at n, the second at n + 1/2. Quantities of the stream are one line per name;
// those of the branches two, as attention and feed-forward have little in common: the second is dashed. Sizes
// (stream_*, branch_*, grad_*, update_*) have a logarithmic axis, others where `log` asks for it. `small`: for pages
// with many; without legend and notes.
Chart layers_chart(const LayerTable& table, int width = 760, bool log = false, bool small = false);

// For a terminal; and `layer,sublayer,NAME...`.
std::string layers_text(const LayerTable& table);
std::string layers_csv(const LayerTable& table);

}  // namespace normlab
