// Whole files, read and written safely. Every error is an IoError that names the path and the system's reason.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// The file's bytes. Directories, missing and unreadable files are IoErrors.
std::string read_file(const std::filesystem::path& path);

// The same of what has an end: pipes and devices are refused too.
std::string read_regular_file(const std::filesystem::path& path);

// Writes `content` to a temporary name beside `path`, flushes it to the disk and renames it: readers see the old file
// or the new one, never a part. On failure (disk full, no permission) the old file stays and the temporary one is
// removed. A symbolic link stays one, its target is replaced; devices and pipes are written to as they are.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);
void write_file_atomically(const std::filesystem::path& path, const std::vector<std::string_view>& pieces);

// Makes a file of that size under the name and removes it again: IoError where the disk cannot hold it.
void reserve_space(const std::filesystem::path& path, std::int64_t bytes);

// Holds a directory for this process alone: a second holder, here or in another process, is an IoError. Released at the
// end of the process too, however it ends.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::filesystem::path& directory);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

 private:
  int descriptor_ = -1;
};

// A file that grows line by line. `append` writes through to the system at once, so that a kill loses at most the line
// being written.
class LineFile {
 public:
  LineFile() = default;
  explicit LineFile(const std::filesystem::path& path);  // opens for appending, creates where missing
  ~LineFile();
  LineFile(LineFile&& other) noexcept;
  LineFile& operator=(LineFile&& other) noexcept;
  void append(std::string_view text);

 private:
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace normlab
