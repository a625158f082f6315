#include "core/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

namespace {

[[noreturn]] void fail(const std::string& path, std::string_view what) {
  throw IoError(str(path, ": ", what, ": ", std::strerror(errno)));
}

void write_all(int descriptor, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path, "cannot write");
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path, "cannot open");
  std::string content;
  struct stat info {};
  if (::fstat(descriptor, &info) == 0 && info.st_size > 0) content.reserve(static_cast<std::size_t>(info.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int reason = errno;
      ::close(descriptor);
      errno = reason;
      fail(path, "cannot read");
    }
    if (got == 0) break;
    content.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  return content;
}

std::string read_regular_file(const std::filesystem::path& path) {
  std::error_code none;
  if (std::filesystem::exists(path, none) && !std::filesystem::is_directory(path, none) &&
      !std::filesystem::is_regular_file(path, none)) {
    throw IoError(str(path.string(), ": is no regular file (a device or a pipe may have no end)"));
  }
  return read_file(path);
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  write_file_atomically(path, std::vector<std::string_view>{content});
}

void write_file_atomically(const std::filesystem::path& named, const std::vector<std::string_view>& pieces) {
  std::error_code none;
  const auto status = std::filesystem::status(named, none);  // of what a link points to
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    const int descriptor = ::open(named.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) fail(named, "cannot open for writing");
    try {
      for (const std::string_view piece : pieces) write_all(descriptor, piece, named);
    } catch (...) {
      ::close(descriptor);
      throw;
    }
    ::close(descriptor);
    return;
  }
  const std::filesystem::path path =
      std::filesystem::is_symlink(named, none) ? std::filesystem::weakly_canonical(named) : named;
  const std::string temporary = path.string() + ".tmp";
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(temporary, "cannot create");
  try {
    for (const std::string_view piece : pieces) write_all(descriptor, piece, temporary);
    if (::fsync(descriptor) != 0) fail(temporary, "cannot flush");
  } catch (...) {
    ::close(descriptor);
    ::unlink(temporary.c_str());
    throw;
  }
  ::close(descriptor);
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    errno = reason;
    fail(path, "cannot rename into place");
  }
  // The rename itself is durable only once the directory is flushed.
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    ::fsync(directory);
    ::close(directory);
  }
}

void reserve_space(const std::filesystem::path& path, std::int64_t bytes) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(path, "cannot create");
  const int reason = ::posix_fallocate(descriptor, 0, bytes);
  ::close(descriptor);
  ::unlink(path.c_str());
  if (reason != 0) {
    errno = reason;
    fail(path, str("cannot reserve ", bytes, " bytes"));
  }
}

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) {
  descriptor_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor_ < 0) fail(directory, "cannot open");
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor_);
    throw IoError(str(directory.string(), ": in use by another process"));
  }
}

DirectoryLock::~DirectoryLock() { ::close(descriptor_); }

LineFile::LineFile(const std::filesystem::path& path) : path_(path.string()) {
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(path_, "cannot open for writing");
}

LineFile::~LineFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

LineFile::LineFile(LineFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

LineFile& LineFile::operator=(LineFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

void LineFile::append(std::string_view text) { write_all(descriptor_, text, path_); }

}  // namespace normlab
