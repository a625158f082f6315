// Verdicts on curves made by hand; the definitions are those of lab/verdict.h.
#include "lab/verdict.h"

#include <cmath>
#include <limits>

#include "../test.h"

using namespace normlab;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> flat(double value, std::size_t steps) { return std::vector<double>(steps, value); }

std::vector<double> operator+(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// From `first` to `last` on a line.
std::vector<double> line(double first, double last, std::size_t steps) {
  std::vector<double> out;
  for (std::size_t i = 0; i < steps; ++i) {
    out.push_back(first + (last - first) * static_cast<double>(i) / static_cast<double>(steps - 1));
  }
  return out;
}

std::string verdict(const std::vector<double>& losses, std::optional<double> entropy = 3.0,
                    const std::string& trouble = "") {
  return judge(losses, entropy, trouble).name;
}

}  // namespace

TEST_CASE("the final loss is the mean of the last 20 steps, or of all where there are fewer") {
  CHECK(final_loss(flat(9, 100) + line(1, 20, 20)) == Approx(10.5));
  CHECK(final_loss({1, 2, 6}) == Approx(3));
  CHECK(final_loss({4}) == 4);
  CHECK(std::isnan(final_loss({})));
}

TEST_CASE("a loss that is not finite anywhere is a divergence, named with its step") {
  CHECK(judge(flat(kNan, 5), 3.0, "").reason == "at step 1: the loss is nan");
  CHECK(verdict(flat(kNan, 5)) == "diverged");
  const Verdict at_the_end = judge(line(5, 1, 99) + flat(kNan, 1), 3.0, "");
  CHECK(at_the_end.name == "diverged");
  CHECK(at_the_end.reason == "at step 100: the loss is nan");
  // One NaN in the middle counts, whatever came after it.
  CHECK(judge(line(5, 1, 50) + flat(kInf, 1) + flat(1, 50), 3.0, "").reason == "at step 51: the loss is inf");
}

TEST_CASE("trouble that stopped the run is a divergence at the last step, before any other judgement") {
  const Verdict v = judge(line(5, 1, 40), 3.0, "the gradient of head.weight is not finite");
  CHECK(v.name == "diverged");
  CHECK(v.reason == "at step 40: the gradient of head.weight is not finite");
}

TEST_CASE("a final loss above the first one is a divergence, the same loss is not") {
  CHECK(verdict(line(4, 6, 100)) == "diverged");
  CHECK(verdict(flat(2, 1) + flat(2.001, 99)) == "diverged");
  CHECK(verdict(flat(2, 100)) == "stable");
  CHECK(verdict(flat(5, 1) + flat(50, 79) + flat(2, 20), std::nullopt) != "diverged");  // it came back
}

TEST_CASE("a run that ends at or only slightly below the context-free entropy has stalled") {
  CHECK(verdict(flat(3, 100)) == "stalled");
  CHECK(verdict(line(5, 3.5, 80) + flat(3.5, 20)) == "stalled");
  // The margin is 2 % of the entropy, 0.06 here, where the losses do not scatter.
  CHECK(verdict(flat(5, 80) + flat(2.945, 20)) == "stalled");
  CHECK(verdict(flat(5, 80) + flat(2.935, 20)) == "stable");
}

TEST_CASE("a noisy end must be below the context-free entropy by three standard errors of its noise") {
  const auto noisy = [](double mean, double spread) {
    std::vector<double> losses = flat(5, 80);
    for (int i = 0; i < 20; ++i) losses.push_back(mean + (i % 2 == 0 ? spread : -spread));
    return losses;
  };
  // Neighbours differ by 2 spread, so s = spread sqrt(2) and 3 s / sqrt(20) = 0.949 spread: 0.474 for 0.5, 0.095 for
  // 0.1.
  CHECK(verdict(noisy(2.54, 0.5)) == "stalled");
  CHECK(verdict(noisy(2.51, 0.5)) == "stable");
  CHECK(verdict(noisy(2.92, 0.1)) == "stalled");
  CHECK(verdict(noisy(2.89, 0.1)) == "stable");
}

TEST_CASE("a steady descent through the entropy is no noise, however wide it is") {
  // Mean 2.8; as noise its standard deviation would ask for 0.25 below the entropy, its steps of 0.063 ask for 0.06.
  CHECK(verdict(flat(5, 80) + line(3.4, 2.2, 20)) == "stable");
}

TEST_CASE("without a known entropy no run has stalled") { CHECK(verdict(flat(3, 100), std::nullopt) == "stable"); }

TEST_CASE("a run of one step is judged by the one loss it has, a run of none was interrupted") {
  CHECK(verdict({5}) == "stalled");
  CHECK(verdict({2}) == "stable");
  CHECK(verdict({kNan}) == "diverged");
  CHECK(verdict({}) == "interrupted");
}

TEST_CASE("a spike counts once the ten-step mean stood above its best by a quarter of the descent for 20 steps") {
  // The descent is 5 - 1, a quarter of it 1. A plateau at 4 lifts the mean of ten steps by more than 1 from its fourth
  // step to the sixth after its end, so a plateau of n steps counts as a spike of n + 3.
  const auto spiked = [](std::size_t n) { return line(5, 1, 100) + flat(1, 20) + flat(4, n) + flat(1, 60); };
  CHECK(verdict(spiked(16)) == "stable");
  CHECK(verdict(spiked(17)) == "spiked");
  const Verdict v = judge(spiked(40), 3.0, "");
  CHECK(v.name == "spiked");
  CHECK(v.reason == "from step 124 the loss stayed far above its best for 43 steps");
  // However high, three steps are short.
  CHECK(verdict(line(5, 1, 100) + flat(1, 20) + flat(100, 3) + flat(1, 60)) == "stable");
}

TEST_CASE("a lower plateau than a quarter of the descent is no spike however long") {
  CHECK(verdict(line(5, 1, 100) + flat(1, 20) + flat(1.9, 60) + flat(1, 60)) == "stable");
  CHECK(verdict(line(5, 1, 100) + flat(1, 20) + flat(2.1, 60) + flat(1, 60)) == "spiked");
}

TEST_CASE("a run that never recovers but ends below its start and its entropy has spiked") {
  CHECK(verdict(line(5, 1, 100) + flat(1, 20) + flat(2.5, 40)) == "spiked");
}

TEST_CASE("a high start is no spike, because spikes are measured from the best mean so far") {
  CHECK(verdict(flat(5, 1) + flat(7, 60) + line(7, 1, 60) + flat(1, 40)) == "stable");
}
