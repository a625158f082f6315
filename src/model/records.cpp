#include "model/records.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

namespace {

// What can stand in a config, in a list of layers ("name:0-5") and in a file name without quotes.
bool is_name(std::string_view name) {
  const auto lower = [](char c) { return c >= 'a' && c <= 'z'; };
  return !name.empty() && lower(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return lower(c) || (c >= '0' && c <= '9') || c == '_'; });
}

constexpr const char* kNameRule = "a name is lower-case letters, digits and _, first a letter";

// Why the option cannot be read from a config; "" where it can.
std::string fault_of(const OptionSpec& o) {
  if (!(o.min <= o.max)) return str("its range is from ", o.min, " to ", o.max);
  if (o.kind == OptionSpec::Kind::word) {
    if (o.words.empty() || o.min != 0 || o.max != static_cast<double>(o.words.size()) - 1)
      return str("its range must be from 0 to the number of its words - 1, not from ", o.min, " to ", o.max, " for ",
                 o.words.size(), " words");
  } else if (!o.words.empty()) {
    return "it has words, but is not of Kind::word";
  }
  if (o.kind == OptionSpec::Kind::boolean && (o.min != 0 || o.max != 1)) return "a boolean's range is from 0 to 1";
  if (std::isnan(o.standard)) return o.rule == nullptr ? "it has neither a default nor a rule" : "";
  if (!(o.standard >= o.min && o.standard <= o.max))
    return str("its default ", o.standard, " is outside its range from ", o.min, " to ", o.max);
  const bool whole = o.kind != OptionSpec::Kind::number;
  return whole && o.standard != std::floor(o.standard) ? str("its default ", o.standard, " is no integer") : "";
}

}  // namespace

std::string check_record(std::string_view kind, std::string_view name, std::string_view formula,
                         const std::vector<OptionSpec>& options, const std::vector<std::string_view>& taken) {
  std::string who = str(kind, " ", quote(name));
  if (!is_name(name)) throw RecordError(str(who, ": ", kNameRule));
  if (formula.empty()) throw RecordError(str(who, " has no formula to list"));
  for (std::size_t i = 0; i < options.size(); ++i) {
    const OptionSpec& option = options[i];
    const std::string which = str(who, ", option ", quote(option.name), ": ");
    if (!is_name(option.name)) throw RecordError(str(which, kNameRule));
    if (std::find(taken.begin(), taken.end(), option.name) != taken.end())
      throw RecordError(str(which, "every ", kind, " has a key of that name"));
    for (std::size_t j = 0; j < i; ++j) {
      if (options[j].name == option.name) throw RecordError(str(which, "declared twice"));
    }
    if (const std::string fault = fault_of(option); !fault.empty()) throw RecordError(which + fault);
  }
  return who;
}

}  // namespace normlab
