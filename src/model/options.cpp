#include "normlab/options.h"

#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

double option_value(const Options& options, const std::vector<OptionSpec>& specs, std::string_view name) {
  for (const OptionSpec& spec : specs) {
    if (spec.name != name) continue;
    const auto at = options.find(name);
    return at == options.end() ? spec.standard : at->second;
  }
  throw Error(str("option '", name, "' is read but not declared"));
}

}  // namespace normlab
