// Runs the built tool as a user does: another process, its own directory, its exit code and both outputs.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/files.h"
#include "test.h"

// A directory of its own, gone with the object.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "normlab-test-XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  // Writes a file and returns its path.
  std::string write(const std::string& name, const std::string& content) const {
    normlab::write_file_atomically(path_ / name, content);
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

// Every file below `directory`, relative path -> content.
inline std::map<std::string, std::string> files_below(const std::filesystem::path& directory) {
  std::map<std::string, std::string> out;
  if (!std::filesystem::exists(directory)) return out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) {
      out[std::filesystem::relative(entry.path(), directory).string()] = normlab::read_file(entry.path());
    }
  }
  return out;
}

struct ProcessOptions {
  std::string output;           // a file for stdout instead of catching it: "/dev/full"
  std::uint64_t file_size = 0;  // no file may grow beyond this many bytes, as on a full disk; 0 = no limit
};

struct ProcessResult {
  int code = -1;  // exit code; 128 + signal where a signal ended it
  std::string out, err;
};

// A started tool. Ends it, if need be, with the object.
class Process {
 public:
  explicit Process(const std::vector<std::string>& arguments, const ProcessOptions& options = {}) {
    const std::string out = options.output.empty() ? scratch_ / "out" : std::filesystem::path(options.output),
                      err = scratch_ / "err";
    std::vector<std::string> words = {NORMLAB_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::setenv("OMP_NUM_THREADS", "1", 0);  // small models; a number from outside and --threads override it
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ > 0) return;
    // The child: only calls that are safe after a fork of a threaded process.
    const int in_file = ::open("/dev/null", O_RDONLY), out_file = ::open(out.c_str(), O_WRONLY | O_CREAT, 0644),
              err_file = ::open(err.c_str(), O_WRONLY | O_CREAT, 0644);
    if (in_file < 0 || out_file < 0 || err_file < 0) ::_exit(126);
    ::dup2(in_file, 0), ::dup2(out_file, 1), ::dup2(err_file, 2);
    if (options.file_size > 0) {
      const rlimit limit{options.file_size, options.file_size};
      ::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit then fails, as on a full disk
      ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ~Process() {
    if (pid_ > 0) kill(SIGKILL), wait();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void kill(int signal) { ::kill(pid_, signal); }

  ProcessResult wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return result(status);
  }
  // Waits until `condition` holds or the tool has ended by itself; true in the first case.
  template <class Condition>
  bool wait_until(const Condition& condition) {
    for (;;) {
      if (condition()) return true;
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid_)
        return false;
      ::usleep(300);
    }
  }

 private:
  ProcessResult result(int status) const {
    const auto content = [](const std::filesystem::path& path) {
      return std::filesystem::exists(path) ? normlab::read_file(path) : std::string();
    };
    const std::string err = content(scratch_ / "err");
    // A sanitizer ends the tool with exit code 1, as an ordinary failure does: its report must not pass for one.
    if (err.find("Sanitizer") != std::string::npos || err.find("runtime error: ") != std::string::npos) FAIL_CHECK(err);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), content(scratch_ / "out"), err};
  }

  ScratchDirectory scratch_;
  pid_t pid_ = -1;
};

inline ProcessResult run_tool(const std::vector<std::string>& arguments, const ProcessOptions& options = {}) {
  return Process(arguments, options).wait();
}
