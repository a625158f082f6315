// Named numbers that a norm or a placement takes from its config section.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

struct OptionSpec {
  std::string_view name;
  double standard;  // the default; NaN stands for "auto": the owner's own rule, for example one by depth
  double min, max;  // inclusive
  enum class Kind { number, integer, boolean } kind;
  std::string_view help;
};

// Values by name. Absent = the default.
using Options = std::map<std::string, double, std::less<>>;

// The value of `name`; NaN where it is "auto". The option must be declared in `specs`.
double option_value(const Options& options, const std::vector<OptionSpec>& specs, std::string_view name);

}  // namespace normlab
