#include "lab/sweep.h"

#include <algorithm>
#include <set>

#include "core/text.h"

namespace normlab {

namespace {

// Letters, digits and a few signs stay; all else becomes '-', so that the name is a plain directory everywhere.
std::string file_part(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                       c == '_' || c == '-' || c == '+';
    if (plain)
      out += c;
    else if (c != '"' && c != '[' && c != ']')
      out += '-';
  }
  return out;
}

std::string text_of(RunConfig config, const std::string& key) {
  for (const Field& f : fields(config)) {
    if (f.key == key) return f.text();
  }
  return "";
}

// "model.norm" as "norm", unless another axis ends alike.
std::string short_key(const std::string& key, const std::vector<SweepAxis>& axes) {
  const auto leaf = [](const std::string& k) { return k.substr(k.rfind('.') + 1); };
  const auto alike =
      std::count_if(axes.begin(), axes.end(), [&](const SweepAxis& a) { return leaf(a.key) == leaf(key); });
  return alike > 1 ? key : leaf(key);
}

}  // namespace

std::vector<SweepPoint> expand(const ConfigFile& given) {
  ConfigFile file = given;
  std::size_t count = 1;
  for (SweepAxis& axis : file.sweep) {
    const auto set = std::find_if(file.settings.begin(), file.settings.end(), [&](const Setting& s) {
      return s.key == axis.key && s.where.rfind("--set", 0) == 0;
    });
    if (set != file.settings.end()) {
      // Where the values themselves are lists (train.betas), a list of values is a list of lists.
      const auto is_list = [](const Toml& value) { return value.kind == Toml::Kind::kArray; };
      const bool lists = is_list(axis.values[0]);
      const bool list = is_list(set->value) && (!lists || (!set->value.items.empty() && is_list(set->value.items[0])));
      if (list && set->value.items.empty()) throw ConfigError(str(set->where, ": '", axis.key, "' has no values"));
      axis = {axis.key, list ? set->value.items : std::vector<Toml>{set->value}, set->where};
      file.settings.erase(set);
    }
    if (axis.key == "run.name")
      throw ConfigError(str(axis.where, ": 'run.name' cannot be swept; runs are named by their values"));
    count *= axis.values.size();
    if (count > 100000) throw ConfigError(str(axis.where, ": the sweep has more than 100000 combinations"));
  }
  std::vector<SweepPoint> points;
  std::set<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Setting> settings = file.settings;
    std::size_t rest = i;
    for (std::size_t a = file.sweep.size(); a-- > 0;) {
      const SweepAxis& axis = file.sweep[a];
      settings.push_back({axis.key, axis.values[rest % axis.values.size()], axis.where});
      rest /= axis.values.size();
    }
    SweepPoint point{resolve(settings), {}};
    point.sweep = point.config.name;
    std::vector<std::string> parts;
    for (const SweepAxis& axis : file.sweep) {
      parts.push_back(str(short_key(axis.key, file.sweep), "=", file_part(text_of(point.config, axis.key))));
    }
    point.config.name = join(parts, ",");
    if (!names.insert(point.config.name).second) {
      throw ConfigError(
          str(file.sweep.back().where, ": two combinations of the sweep are the same run: ", point.config.name));
    }
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace normlab
