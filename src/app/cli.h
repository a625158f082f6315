// The command line: a table of commands, each with its options; parsing, help, errors with the nearest name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/real.h"

namespace normlab {

struct OptionDef {
  std::string_view name;   // "--out"
  std::string_view value;  // "DIR"; "" = a switch
  std::string_view help;
  bool repeats = false;
};

// What a command was given, checked against its table.
class Arguments {
 public:
  std::vector<std::string> positional;
  bool has(std::string_view option) const;
  std::string text(std::string_view option, std::string_view otherwise = "") const;
  std::vector<std::string> all(std::string_view option) const;
  // UsageError naming the option, the value and the range where it is no such number.
  int64_t integer(std::string_view option, int64_t otherwise, int64_t min, int64_t max) const;
  double number(std::string_view option, double otherwise, double min, double max) const;

 private:
  friend Arguments parse_arguments(const struct Command& command, const std::vector<std::string>& words);
  std::map<std::string, std::vector<std::string>, std::less<>> options_;
};

struct Command {
  std::string_view name;
  std::string_view operands;  // "CONFIG", for the usage line
  std::string_view summary;
  std::size_t min_operands, max_operands;
  std::vector<OptionDef> options;
  int (*run)(const Arguments& arguments);  // returns the exit code
};

const std::vector<Command>& commands();
std::string help_of(const Command& command);
std::string general_help();

}  // namespace normlab
