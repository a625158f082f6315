#include "lab/progress.h"

#include <unistd.h>

#include <cstdio>

#include "core/text.h"

namespace normlab {

namespace {

constexpr auto kRefresh = std::chrono::milliseconds(100);

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return str(whole, " s");
  if (whole < 3600) return str(whole / 60, " min ", whole % 60, " s");
  return str(whole / 3600, " h ", whole % 3600 / 60, " min");
}

}  // namespace

Progress::Progress(std::int64_t steps, std::int64_t first_step, bool wanted)
    : steps_(steps),
      first_step_(first_step),
      wanted_(wanted && ::isatty(STDERR_FILENO) != 0),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (wanted_) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(std::int64_t step, double loss, double tokens_per_second) {
  const auto now = Clock::now();
  if (!wanted_ || now - last_ < kRefresh) return;
  last_ = now;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const double left = elapsed / static_cast<double>(step - first_step_) * static_cast<double>(steps_ - step);
  const std::string line =
      str("\r\x1b[Kstep ", step, " of ", steps_, "  loss ", fixed(loss, 4), "  ",
          grouped(static_cast<std::int64_t>(tokens_per_second)), " tokens/s  ", duration(left), " left");
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

void message(const char* kind, const char* text) { std::fprintf(stderr, "%s: %s\n", kind, text); }

}  // namespace normlab
