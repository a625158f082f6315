// Typed errors. Thrown while parsing, building and writing only; a training step never throws, divergence is data.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace normlab {

// Base of all errors the tool reports as one line. `exit_code` is what the command line returns for it.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, int exit_code = 1) : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// A file that cannot be read or written, or whose content is damaged. Exit code 1.
struct IoError : Error {
  explicit IoError(const std::string& message) : Error(message, 1) {}
};

// Data that cannot serve: too short, ids out of range. Exit code 1.
struct DataError : Error {
  explicit DataError(const std::string& message) : Error(message, 1) {}
};

// A wrong command line. Exit code 2.
struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error(message, 2) {}
};

// A wrong configuration. The message starts with file:line:column where these are known. Exit code 2.
struct ConfigError : Error {
  explicit ConfigError(const std::string& message) : Error(message, 2) {}
};

// A norm or a placement that cannot be registered: what it lacks, by name. Exit code 2.
struct RecordError : Error {
  explicit RecordError(const std::string& message) : Error(message, 2) {}
};

// Tensors that do not fit together, with the path of the layer. Found when the graph is built, so a configuration asked
// for it. Exit code 2.
struct ShapeError : Error {
  explicit ShapeError(const std::string& message) : Error(message, 2) {}
};

}  // namespace normlab
