// Named numbers that a norm or a placement takes from its config section.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

struct OptionSpec {
  std::string_view name;
  double standard;  // the default; NaN where `rule` gives it
  double min, max;  // inclusive
  enum class Kind { number, integer, boolean, word } kind;
  std::string_view help;
  bool divides_width = false;                     // must divide model.width
  double (*rule)(std::int64_t layers) = nullptr;  // what "auto" means: the paper's rule for N layers
  std::vector<std::string_view> words = {};       // of Kind::word; the value is a word's place among them, from 0
};

// Values by name. Absent = the default.
using Options = std::map<std::string, double, std::less<>>;

// The value of `name`, which must be declared in `specs`: the given one, else the rule's for `layers`, else the
// default.
double option_value(const Options& options, const std::vector<OptionSpec>& specs, std::string_view name,
                    std::int64_t layers = 0);

}  // namespace normlab
