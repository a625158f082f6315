// Lists such as ["post:0-5", "pre:6-23"]: a name for every layer, counted from 0.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace normlab {

// The name of each of the N layers; none where the list is empty. ConfigError (without a place) unless every entry is
// name:layer or name:first-last, with a name out of `choices`, and every layer is named exactly once.
std::vector<std::string> names_of_layers(const std::string& key, const std::vector<std::string>& ranges,
                                         const std::vector<std::string>& choices, std::int64_t layers);

// The same as entries of a registry of pointers to records with a name.
template <class Registry>
Registry entries_of_layers(const std::string& key, const std::vector<std::string>& ranges, const Registry& registry,
                           std::int64_t layers) {
  std::vector<std::string> choices;
  for (const auto* entry : registry) choices.emplace_back(entry->name);
  Registry out;
  for (const std::string& name : names_of_layers(key, ranges, choices, layers)) {
    for (const auto* entry : registry)
      if (entry->name == name) out.push_back(entry);
  }
  return out;
}

// The names in the list, each once, as they come; entries that are no range are left out.
std::vector<std::string> names_in_ranges(const std::vector<std::string>& ranges);

}  // namespace normlab
