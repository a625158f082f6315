// A CSV file of a run that a resume goes on with. A checkpoint holds the digest of the rows up to its step, so that
// rows edited or lost since are noticed, not continued.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/digest.h"
#include "core/files.h"

namespace normlab {

class RowFile {
 public:
  RowFile() = default;
  RowFile(std::filesystem::path path, std::string header);

  // Takes the header and the rows up to `step` from the file, if there is one; what a killed run wrote after its
  // checkpoint is written again. IoError where the columns are others.
  void keep(std::int64_t step);

  // IoError where what was kept is not what `digest` was taken of.
  void require(const std::string& digest, std::int64_t step) const;

  void open();  // writes what was kept and goes on from there
  void append(std::string_view row);

  const std::string& kept() const { return kept_; }
  std::string digest() const { return hex(digest_); }

 private:
  std::filesystem::path path_;
  std::string header_, kept_;
  std::uint64_t digest_ = kNoBytes;
  LineFile file_;
};

}  // namespace normlab
