// What no single key can say: settings that contradict each other, and settings that nothing would read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/run_config.h"

namespace normlab {

// `where` has the place of every key that was given. ConfigError at the place of a key concerned.
void check_combinations(const RunConfig& config, const std::map<std::string, std::string>& where);

// Settings other than the default that are allowed beside the others (so that a sweep can vary those), but have no
// effect; a warmup as long as the run.
std::vector<std::string> config_warnings(const RunConfig& config);

}  // namespace normlab
