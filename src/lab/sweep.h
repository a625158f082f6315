// Sweeps: every combination of lists of values, each a run in its own directory.
#pragma once

#include <string>
#include <vector>

#include "train/run_config.h"

namespace normlab {

struct SweepPoint {
  RunConfig config;   // its name is a directory name made of the axes' values: "placement=post,warmup=0"
  std::string sweep;  // run.name of the file, the directory above
};

// All combinations, the last axis fastest, every one checked. A swept key that --set gives too takes its values from
// there: one, or a list.
std::vector<SweepPoint> expand(const ConfigFile& file);

}  // namespace normlab
