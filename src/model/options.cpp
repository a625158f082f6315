#include "normlab/options.h"

#include <cmath>

#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

double option_value(const Options& options, const std::vector<OptionSpec>& specs, std::string_view name,
                    std::int64_t layers) {
  for (const OptionSpec& spec : specs) {
    if (spec.name != name) continue;
    const auto at = options.find(name);
    const double value = at == options.end() ? spec.standard : at->second;
    return std::isnan(value) && spec.rule != nullptr ? spec.rule(layers) : value;
  }
  throw Error(str("option '", name, "' is read but not declared"));
}

}  // namespace normlab
