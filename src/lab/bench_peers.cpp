// The same training steps in PyTorch: experiments/peers/torch_step.py, started in turns with our own.
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>

#include "core/parallel.h"
#include "core/text.h"
#include "lab/bench.h"
#include "lab/progress.h"
#include "normlab/error.h"

namespace normlab {

namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 3;

// What a shell command prints, or nothing where it fails.
std::optional<std::string> output_of(const std::string& command) {
  std::fflush(nullptr);
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string out;
  std::array<char, 256> buffer;
  while (std::fgets(buffer.data(), static_cast<int>(buffer.size()), pipe) != nullptr) out += buffer.data();
  if (::pclose(pipe) != 0) return std::nullopt;
  return out;
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The interpreter named by PYTHON, else the first that has PyTorch; "" = none.
std::string find_python() {
  const char* named = std::getenv("PYTHON");
  const std::vector<std::string> candidates = named != nullptr && *named != '\0'
                                                  ? std::vector<std::string>{named}
                                                  : std::vector<std::string>{"python3", "/usr/bin/python3"};
  for (const std::string& python : candidates) {
    if (output_of(str(shell_quoted(python), " -c 'import torch' 2>/dev/null"))) return shell_quoted(python);
  }
  return "";
}

// Beside the sources, which lie above the working directory or above the program; "" = not found.
std::string find_script() {
  std::error_code error;
  for (fs::path start : {fs::current_path(error), fs::read_symlink("/proc/self/exe", error).parent_path()}) {
    for (; !start.empty(); start = start.parent_path()) {
      const fs::path script = start / "experiments/peers/torch_step.py";
      if (fs::exists(script, error)) return script.string();
      if (start == start.root_path()) break;
    }
  }
  return "";
}

// Seconds per step at the best thread count. The script prints a line "threads seconds" for each.
struct Best {
  int threads = 0;
  double seconds = std::numeric_limits<double>::infinity();
};

Best best_of(const std::string& command) {
  const auto out = output_of(command);
  if (!out) throw Error(str("the PyTorch script failed: ", command));
  Best best;
  for (const std::string& line : split(*out, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() != 2) continue;
    const auto threads = parse_int(words[0]);
    const auto seconds = parse_double(words[1]);
    if (!threads || !seconds || !(*seconds > 0)) throw Error(str("the PyTorch script printed ", quote(line)));
    if (*seconds < best.seconds) best = {static_cast<int>(*threads), *seconds};
  }
  if (best.threads == 0) throw Error(str("the PyTorch script printed no times: ", command));
  return best;
}

BenchRow compare_step(const StepSize& size, const std::string& command, int threads) {
  BenchStep step(size);
  const Work work = {one_by_one([&] { step.run(); }), step.tokens(), "tokens/s", 1};
  std::vector<double> ours, theirs, ratios;
  std::vector<int> best_threads;
  double before = measure({work, "", {}}, false, 0).value.median;
  for (int round = 0; round < kRounds; ++round) {
    const Best best = best_of(command);
    const double after = measure({work, "", {}}, false, 0).value.median;
    ours.push_back((before + after) / 2);
    theirs.push_back(step.tokens() / best.seconds);
    ratios.push_back(ours.back() / theirs.back());
    best_threads.push_back(best.threads);
    before = after;
  }
  BenchRow row;
  row.group = "peers";
  row.name = str("step ", size.name);
  row.threads = threads;
  row.unit = row.against_unit = work.unit;
  row.value = median_range(ours);
  std::sort(best_threads.begin(), best_threads.end());
  row.against = str("PyTorch, ", best_threads[kRounds / 2], best_threads[kRounds / 2] == 1 ? " thread" : " threads");
  row.against_value = median_range(theirs).median;
  row.ratio = median_range(ratios);
  row.repetitions = kRounds;
  return row;
}

}  // namespace

void run_bench_peers(const BenchOptions& options, const std::function<void(const BenchRow&)>& row) {
  const std::string script = find_script(), python = script.empty() ? "" : find_python();
  if (python.empty()) {
    message("skipped",
            script.empty()
                ? "peers: experiments/peers/torch_step.py is neither above the working directory nor above this program"
                : "peers: no Python with PyTorch found (Debian, Ubuntu: python3-torch; the environment variable PYTHON "
                  "names an interpreter)");
    return;
  }
  set_threads(options.threads);
  for (const StepSize& size : kStepSizes) {
    std::string command = str(python, " ", shell_quoted(script));
    for (const int64_t number : {size.layers, size.width, size.heads, size.context, size.batch})
      command += str(" ", number);
    command += options.threads > 1 ? str(" 1 ", options.threads) : " 1";
    try {
      row(compare_step(size, command, options.threads));
    } catch (const Error& error) {
      message("skipped", str("peers, ", size.name, ": ", error.what()).c_str());
    }
  }
}

}  // namespace normlab
