#include "lab/row_file.h"

#include "core/text.h"
#include "normlab/error.h"
#include "report/csv.h"

namespace normlab {

RowFile::RowFile(std::filesystem::path path, std::string header)
    : path_(std::move(path)), header_(std::move(header)), kept_(header_), digest_(fnv1a(kept_)) {}

void RowFile::keep(std::int64_t step) {
  if (!std::filesystem::exists(path_)) return;
  const std::string rows = cut_rows_after(read_file(path_), step, path_.string());
  if (rows.empty()) return;
  if (rows.rfind(header_, 0) != 0) throw IoError(str(path_.string(), ":1: the columns are not those of this version"));
  kept_ = rows;
  digest_ = fnv1a(kept_);
}

void RowFile::require(const std::string& digest, std::int64_t step) const {
  if (this->digest() == digest) return;
  throw IoError(str(path_.string(), ": the rows up to step ", step,
                    " of the checkpoint are not those the run wrote: edited, or some are missing; --overwrite runs it "
                    "again"));
}

void RowFile::open() {
  write_file_atomically(path_, kept_);
  file_ = LineFile(path_);
}

void RowFile::append(std::string_view row) {
  file_.append(row);
  digest_ = fnv1a(row, digest_);
}

}  // namespace normlab
