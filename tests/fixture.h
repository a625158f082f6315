// Numbers another program computed, as text: a line is a name, a shape ("2x5x12") and the values; '#' starts a comment
// line.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/files.h"
#include "core/text.h"
#include "normlab/error.h"
#include "normlab/real.h"
#include "test.h"

struct FixtureTensor {
  std::vector<normlab::int64_t> shape;
  std::vector<double> values;

  double largest() const {
    double most = 0;
    for (const double v : values) most = std::max(most, std::abs(v));
    return most;
  }
};

class Fixture {
 public:
  // tests/fixtures/<name>
  explicit Fixture(const std::string& name) : name_(name) {
    const std::string content = normlab::read_file(std::string(NORMLAB_SOURCE_DIR "/tests/fixtures/") + name);
    for (const std::string& line : normlab::split(content, '\n')) {
      if (line.empty() || line[0] == '#') continue;
      const std::vector<std::string> words = normlab::split(line, ' ');
      FixtureTensor tensor;
      normlab::int64_t count = 1;
      for (const std::string& size : normlab::split(words.at(1), 'x')) {
        tensor.shape.push_back(normlab::parse_int(size).value());
        count *= tensor.shape.back();
      }
      for (std::size_t i = 2; i < words.size(); ++i) tensor.values.push_back(normlab::parse_double(words[i]).value());
      if (static_cast<normlab::int64_t>(tensor.values.size()) != count)
        fail(words[0], "has another number of values than its shape");
      if (!tensors_.emplace(words[0], std::move(tensor)).second) fail(words[0], "stands there twice");
    }
  }

  const FixtureTensor& at(const std::string& tensor) const {
    const auto found = tensors_.find(tensor);
    if (found == tensors_.end()) fail(tensor, "is missing");
    return found->second;
  }
  bool has(const std::string& tensor) const { return tensors_.count(tensor) > 0; }

  // Names that start with `prefix`, without it.
  std::vector<std::string> names(std::string_view prefix) const {
    std::vector<std::string> out;
    for (const auto& [name, tensor] : tensors_) {
      if (name.compare(0, prefix.size(), prefix) == 0) out.push_back(name.substr(prefix.size()));
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& tensor, std::string_view what) const {
    throw normlab::DataError(normlab::str("tests/fixtures/", name_, ": ", tensor, " ", what));
  }

  std::string name_;
  std::map<std::string, FixtureTensor> tensors_;
};
