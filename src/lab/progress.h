// The progress line of a run, on stderr, only where that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>

namespace normlab {

class Progress {
 public:
  Progress(std::int64_t steps, std::int64_t first_step, bool wanted);
  ~Progress();  // clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::int64_t step, double loss, double tokens_per_second);

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t steps_, first_step_;
  bool wanted_;
  Clock::time_point start_, last_;
};

// A message for people: to stderr, on a line of its own.
void message(const char* kind, const char* text);

}  // namespace normlab
