// What became of a run, computed in this one place from its losses. README, "Verdicts", says the same in words.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace normlab {

struct Verdict {
  std::string name;    // stable | stalled | spiked | diverged | interrupted
  std::string reason;  // one sentence with the figures
};

// Of the rules below and of those like them: the share of the context-free entropy that is clearly below it, the steps
// of the mean in which spikes are sought, and the share of the descent that is far above the best.
inline constexpr double kClear = 0.02, kSpike = 0.25;
inline constexpr std::size_t kSmooth = 10;

// Mean of the last min(20, n) losses.
double final_loss(const std::vector<double>& losses);

// Let first = losses[0], final = final_loss(losses), H = context-free entropy (nats). In this order:
//   diverged  a loss is not finite, or `trouble` says why the run stopped; or final > first
//   stalled   final > H - max(0.02 H, 3 s / sqrt(n)): not clearly below what a predictor without context reaches. n =
//   min(20, steps) last
//             losses, s = their noise, the root of half the mean squared difference of neighbours
//   spiked    the mean over 10 steps stayed above its best so far by more than a quarter of the run's whole descent
//   (first - lowest such mean)
//             for 20 steps in a row or more
//   stable    none of these
// Runs of fewer than 20 steps are judged by the losses they have.
Verdict judge(const std::vector<double>& losses, std::optional<double> context_free_entropy,
              const std::string& trouble);

}  // namespace normlab
