#include "lab/verdict.h"

#include <algorithm>
#include <cmath>

#include "core/text.h"

namespace normlab {

namespace {

constexpr std::size_t kFinal = 20;      // steps of the final loss
constexpr std::size_t kLongSpike = 20;  // steps

std::vector<double> tail(const std::vector<double>& losses) {
  return {losses.end() - static_cast<std::ptrdiff_t>(std::min(kFinal, losses.size())), losses.end()};
}

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

// Standard deviation of the losses around their trend, from differences of neighbours (von Neumann 1941): a falling
// curve is not noise.
double noise(const std::vector<double>& x) {
  double squares = 0;
  for (std::size_t i = 1; i < x.size(); ++i) squares += (x[i] - x[i - 1]) * (x[i] - x[i - 1]);
  return x.size() < 2 ? 0 : std::sqrt(squares / (2 * static_cast<double>(x.size() - 1)));
}

// The longest spike: its first step (from 1) and length in steps.
struct Spike {
  std::size_t first = 0, length = 0;
};

Spike longest_spike(const std::vector<double>& losses) {
  if (losses.size() < kSmooth) return {};
  std::vector<double> smooth;
  for (std::size_t i = kSmooth; i <= losses.size(); ++i) {
    smooth.push_back(mean(
        {losses.begin() + static_cast<std::ptrdiff_t>(i - kSmooth), losses.begin() + static_cast<std::ptrdiff_t>(i)}));
  }
  const double bound = kSpike * (losses[0] - *std::min_element(smooth.begin(), smooth.end()));
  Spike longest, now;
  double best = smooth[0];
  for (std::size_t i = 0; i < smooth.size(); ++i) {
    best = std::min(best, smooth[i]);
    if (smooth[i] <= best + bound) {
      now = {};
      continue;
    }
    if (now.length++ == 0) now.first = i + kSmooth;
    if (now.length > longest.length) longest = now;
  }
  return longest;
}

}  // namespace

double final_loss(const std::vector<double>& losses) { return losses.empty() ? std::nan("") : mean(tail(losses)); }

Verdict judge(const std::vector<double>& losses, std::optional<double> entropy, const std::string& trouble) {
  if (!trouble.empty()) return {"diverged", str("at step ", losses.size(), ": ", trouble)};
  if (losses.empty()) return {"interrupted", "before the first step"};
  for (std::size_t i = 0; i < losses.size(); ++i) {
    if (!std::isfinite(losses[i])) return {"diverged", str("at step ", i + 1, ": the loss is ", losses[i])};
  }
  const std::vector<double> last = tail(losses);
  const double end = mean(last), first = losses[0];
  if (end > first) return {"diverged", str("final loss ", fixed(end, 4), " is above the first, ", fixed(first, 4))};
  if (entropy) {
    const double margin = std::max(kClear * *entropy, 3 * noise(last) / std::sqrt(static_cast<double>(last.size())));
    if (end > *entropy - margin) {
      return {"stalled", str("final loss ", fixed(end, 4), " is not clearly (by ", fixed(margin, 4), ") below ",
                             fixed(*entropy, 4), ", the context-free entropy")};
    }
  }
  const Spike spike = longest_spike(losses);
  if (spike.length >= kLongSpike) {
    return {"spiked",
            str("from step ", spike.first, " the loss stayed far above its best for ", spike.length, " steps")};
  }
  return {"stable",
          entropy ? str("final loss ", fixed(end, 4), " is below ", fixed(*entropy, 4), ", the context-free entropy")
                  : str("final loss ", fixed(end, 4))};
}

}  // namespace normlab
