#include "app/cli.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <new>

#include "core/text.h"
#include "kernels/kernels.h"
#include "lab/run.h"
#include "normlab/error.h"
#include "normlab/main.h"

namespace normlab {

bool Arguments::has(std::string_view option) const { return options_.find(option) != options_.end(); }

std::string Arguments::text(std::string_view option, std::string_view otherwise) const {
  const auto at = options_.find(option);
  return at == options_.end() ? std::string(otherwise) : at->second.back();
}

std::vector<std::string> Arguments::all(std::string_view option) const {
  const auto at = options_.find(option);
  return at == options_.end() ? std::vector<std::string>() : at->second;
}

int64_t Arguments::integer(std::string_view option, int64_t otherwise, int64_t min, int64_t max) const {
  if (!has(option)) return otherwise;
  const auto value = parse_int(text(option));
  if (!value || *value < min || *value > max) {
    throw UsageError(str(option, " must be an integer from ", min, " to ", max, ", not ", quote(text(option))));
  }
  return *value;
}

double Arguments::number(std::string_view option, double otherwise, double min, double max) const {
  if (!has(option)) return otherwise;
  const auto value = parse_double(text(option));
  if (!value || !(*value >= min && *value <= max)) {
    throw UsageError(str(option, " must be a number from ", min, " to ", max, ", not ", quote(text(option))));
  }
  return *value;
}

Arguments parse_arguments(const Command& command, const std::vector<std::string>& words) {
  Arguments out;
  bool options_over = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (options_over || word.size() < 2 || word[0] != '-') {
      out.positional.push_back(word);
      continue;
    }
    if (word == "--") {
      options_over = true;
      continue;
    }
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto def = std::find_if(command.options.begin(), command.options.end(),
                                  [&](const OptionDef& o) { return o.name == name; });
    if (def == command.options.end()) {
      std::vector<std::string> names;
      for (const OptionDef& o : command.options) names.emplace_back(o.name);
      throw UsageError(str("normlab ", command.name, ": unknown option ", quote(name), did_you_mean(name, names)));
    }
    std::string value;
    if (def->value.empty()) {
      if (equals != std::string::npos) throw UsageError(str(name, " takes no value"));
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else if (i + 1 < words.size()) {
      value = words[++i];
    } else {
      throw UsageError(str(name, " needs a value: ", name, " ", def->value));
    }
    if (value.empty() && (def->value == "DIR" || def->value == "FILE"))
      throw UsageError(str(name, " needs a value: ", name, " ", def->value));
    auto& values = out.options_[name];
    if (!values.empty() && !def->repeats) throw UsageError(str(name, " is given twice"));
    values.push_back(value);
  }
  if (out.positional.size() < command.min_operands) {
    throw UsageError(
        str("normlab ", command.name, " needs ", command.operands, "; see normlab ", command.name, " --help"));
  }
  if (out.positional.size() > command.max_operands) {
    throw UsageError(
        str("normlab ", command.name, ": unexpected argument ", quote(out.positional[command.max_operands])));
  }
  return out;
}

std::string help_of(const Command& command) {
  std::string out = str("usage: normlab ", command.name, " ", command.operands,
                        command.options.empty() ? "" : " [options]", "\n\n", command.summary, "\n");
  if (!command.options.empty()) out += "\noptions:\n";
  for (const OptionDef& o : command.options) {
    std::string left = str("  ", o.name, o.value.empty() ? "" : " ", o.value);
    left.resize(std::max<std::size_t>(left.size() + 2, 28), ' ');
    out += str(left, o.help, "\n");
  }
  return out;
}

std::string general_help() {
  std::string out =
      "normlab: a laboratory for normalization in deep Transformers\n\nusage: normlab COMMAND ...\n\ncommands:\n";
  for (const Command& c : commands()) {
    std::string left = str("  ", c.name, " ", c.operands);
    left.resize(std::max<std::size_t>(left.size() + 2, 36), ' ');
    out += str(left, c.summary.substr(0, c.summary.find('\n')), "\n");
  }
  out +=
      "\n  normlab COMMAND --help              its options\n  normlab --version\n\n"
      "Results go to stdout, progress and messages to stderr. Exit codes: 0 done (a run that diverged is a result),\n"
      "1 failure, 2 usage or configuration error, 3 with --strict a verdict other than stable, or a sweep with a\n"
      "failing run, 130 interrupted.\n";
  return out;
}

namespace {

int dispatch(const std::vector<std::string>& words) {
  if (words.empty()) {
    std::fputs(general_help().c_str(), stderr);
    return 2;
  }
  const auto asks = [](const std::string& w) { return w == "--help" || w == "-h"; };
  if (words[0] == "help" && words.size() > 1) return dispatch({words[1], "--help"});
  if (asks(words[0]) || words[0] == "help") {
    std::fputs(general_help().c_str(), stdout);
    return 0;
  }
  if (words[0] == "--version") {
    std::fputs(str("normlab ", kVersion, sizeof(real) == sizeof(double) ? " (double)" : "",
                   " (kernels: ", kernels().name, ")\n")
                   .c_str(),
               stdout);
    return 0;
  }
  for (const Command& command : commands()) {
    if (command.name != words[0]) continue;
    const std::vector<std::string> rest(words.begin() + 1, words.end());
    if (std::any_of(rest.begin(), rest.end(), asks)) {
      std::fputs(help_of(command).c_str(), stdout);
      return 0;
    }
    return command.run(parse_arguments(command, rest));
  }
  std::vector<std::string> names;
  for (const Command& c : commands()) names.emplace_back(c.name);
  throw UsageError(str("unknown command ", quote(words[0]), did_you_mean(words[0], names), "; see normlab --help"));
}

}  // namespace

int main_program(int argc, char** argv, const Additions& additions) {
  int code = 0;
  try {
    for (const NormDef* norm : additions.norms) register_norm(*norm);
    for (const Placement* placement : additions.placements) register_placement(*placement);
    code = dispatch(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const Error& error) {
    std::fprintf(stderr, "normlab: %s\n", error.what());
    return error.exit_code();
  } catch (const std::bad_alloc&) {
    std::fputs("normlab: out of memory\n", stderr);
    return 1;
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "normlab: %s: %s\n", error.path1().c_str(), error.code().message().c_str());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "normlab: internal error: %s\n", error.what());
    return 1;
  }
  // Results that never reached the reader (a full disk behind stdout) are a failure.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fputs("normlab: cannot write to standard output\n", stderr);
    return 1;
  }
  return code;
}

}  // namespace normlab
