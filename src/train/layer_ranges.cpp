#include "train/layer_ranges.h"

#include <algorithm>

#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

namespace {

std::string layer_range(std::size_t first, std::size_t last) {
  return first == last ? std::to_string(first) : str(first, "-", last);
}

}  // namespace

std::vector<std::string> names_of_layers(const std::string& key, const std::vector<std::string>& ranges,
                                         const std::vector<std::string>& choices, std::int64_t layers) {
  if (ranges.empty()) return {};
  std::vector<std::string> names(static_cast<std::size_t>(layers));
  for (const std::string& entry : ranges) {
    const std::size_t colon = entry.find(':');
    const std::string name = entry.substr(0, colon);
    const std::vector<std::string> bounds = split(colon == std::string::npos ? "" : entry.substr(colon + 1), '-');
    const auto first = parse_int(bounds.front()), last = parse_int(bounds.back());
    if (bounds.size() > 2 || !first || !last)
      throw ConfigError(str("'", key, "' has ", quote(entry), "; expected \"name:first-last\" or \"name:layer\""));
    if (std::find(choices.begin(), choices.end(), name) == choices.end()) {
      throw ConfigError(str("'", key, "' has ", quote(entry), did_you_mean(name, choices),
                            "; expected one of: ", join(choices, ", ")));
    }
    if (*last < *first) throw ConfigError(str("'", key, "' has ", quote(entry), ", a range that runs backwards"));
    if (*first < 0 || *last >= layers) {
      throw ConfigError(str("'", key, "' has ", quote(entry), "; layers go from 0 to ", layers - 1,
                            " ('model.layers' is ", layers, ")"));
    }
    for (auto layer = static_cast<std::size_t>(*first); layer <= static_cast<std::size_t>(*last); ++layer) {
      if (!names[layer].empty()) {
        throw ConfigError(
            str("'", key, "' names layer ", layer, " twice: ", quote(names[layer]), " and ", quote(entry)));
      }
      names[layer] = name;
    }
  }
  const auto open = std::find(names.begin(), names.end(), "");
  if (open != names.end()) {
    const auto end = std::find_if(open, names.end(), [](const std::string& name) { return !name.empty(); });
    throw ConfigError(str("'", key, "' names nothing for layer ",
                          layer_range(static_cast<std::size_t>(open - names.begin()),
                                      static_cast<std::size_t>(end - names.begin()) - 1)));
  }
  return names;
}

std::vector<std::string> names_in_ranges(const std::vector<std::string>& ranges) {
  std::vector<std::string> names;
  for (const std::string& entry : ranges) {
    const std::string name = entry.substr(0, entry.find(':'));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace normlab
