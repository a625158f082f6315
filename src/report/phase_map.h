// A phase map: the runs of a sweep over one or two keys as cells of a grid, each with its final loss and its verdict.
// As a table for a terminal, a CSV and an SVG image, which needs nothing outside itself.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/compare.h"

namespace normlab {

struct MapCell {
  std::vector<std::string> runs;  // their names; empty = no run has these values
  std::size_t agree = 0;          // how many of them have `verdict`
  std::string verdict;            // the worst: diverged, stalled, spiked, interrupted, unknown ("-"), stable
  // Mean of the final values (as in curve_facts) of the runs that did not diverge and have the metric; may be nan or
  // infinite. Nothing where there is no such run.
  std::optional<double> value;
  bool beyond = false;  // so far above the others that a scale with it would show nothing else

  // Only these have a colour of the scale. A cell in which one run of several diverged has none: the mean of those that
  // are left says nothing about the others.
  bool on_scale() const;
};

struct PhaseMap {
  std::string metric;
  std::string x_key, y_key;         // y_key is "" for a map of one row
  std::vector<std::string> xs, ys;  // values: numbers ascending, then the others in the order of first appearance
  std::vector<MapCell> cells;       // cells[y * xs.size() + x]
  std::vector<std::string> notes;   // what a reader must know: missing cells, keys that differ besides the axes

  const MapCell& at(std::size_t x, std::size_t y) const { return cells[y * xs.size() + x]; }
  // Rows from top to bottom: numbers grow upwards, as on an axis, others read downwards.
  std::vector<std::size_t> rows() const;
};

// `keys`: "X_KEY,Y_KEY", or "X_KEY" for a map of one row. Runs of one cell must differ in run.seed (and run.name) only.
// UsageError where they do not, where a run has no config, where a key is in no run or the same in all: it then names
// the keys that differ.
PhaseMap phase_map(const std::vector<Run>& runs, std::string_view metric, std::string_view keys);

// A value of the map with as many decimals as tell its values apart.
std::string map_number(const PhaseMap& map, double value);

// "2.41 stable"; "2.41 stalled 1/3" where one of three runs has the verdict; "-" without a run.
std::string map_text(const PhaseMap& map, const MapCell& cell);

// For a terminal: the grid, then the notes.
std::string map_table(const PhaseMap& map);

// `X_KEY,Y_KEY,METRIC,verdict,agree,n,runs`, one line per cell, those without a run too (n = 0); without Y_KEY where
// the map has one row. Names of runs are separated by blanks.
std::string map_csv(const PhaseMap& map);

struct MapOptions {
  bool log = false;  // colours by the logarithm; linear where a value is not above 0
  int width = 760;   // pixels wished for; many columns take more
};
std::string map_svg(const PhaseMap& map, const MapOptions& options = {});

}  // namespace normlab
