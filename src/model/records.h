// What registering a norm or a placement from outside asks of its record. Those of the library meet it too; a test
// holds that.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "normlab/options.h"

namespace normlab {

// RecordError unless name, formula and options can serve in configs and lists. `taken`: keys that the record's section
// has already. Returns "norm 'x'", kind and name, for further messages.
std::string check_record(std::string_view kind, std::string_view name, std::string_view formula,
                         const std::vector<OptionSpec>& options, const std::vector<std::string_view>& taken);

}  // namespace normlab
