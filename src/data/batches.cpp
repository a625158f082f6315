#include "data/batches.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"

namespace normlab {

namespace {

std::span<const uint16_t> window_at(std::span<const uint16_t> part, uint64_t start, int64_t context) {
  return part.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(context) + 1);
}

}  // namespace

Batches::Batches(const Corpus& corpus, uint64_t seed, int64_t context)
    : corpus_(corpus), seed_(seed), context_(context) {}

uint64_t Batches::longest_padding() const {
  // 2 * 0.35 * 10 is a hair below 7 in binary; the nudge keeps the floor meant.
  const auto longest = static_cast<int64_t>(std::floor(2.0 * corpus_.padding() * static_cast<double>(context_) + 1e-9));
  return static_cast<uint64_t>(std::clamp(longest, int64_t{0}, std::max(context_ - 2, int64_t{0})));
}

void Batches::fill(std::span<const uint16_t> window, uint64_t padding, int32_t* tokens, int32_t* targets) const {
  const int64_t kept = context_ - static_cast<int64_t>(padding);
  for (int64_t t = 0; t < context_; ++t) {
    const auto at = static_cast<std::size_t>(t);
    tokens[t] = t < kept ? window[at] : corpus_.pad();
    targets[t] = t + 1 < kept || padding == 0 ? window[at + 1] : kIgnored;
  }
}

void Batches::train(int64_t update, int64_t sequence, int32_t* tokens, int32_t* targets) const {
  const auto step = static_cast<uint64_t>(update), index = static_cast<uint64_t>(sequence);
  const uint64_t starts = corpus_.train().size() - static_cast<uint64_t>(context_);
  const uint64_t start = Rng(seed_, stream_id("batch"), step).below(index, starts);
  const uint64_t padding = Rng(seed_, stream_id("padding"), step).below(index, longest_padding() + 1);
  fill(window_at(corpus_.train(), start, context_), padding, tokens, targets);
}

void Batches::validation(int64_t index, int64_t count, int32_t* tokens, int32_t* targets) const {
  const auto i = static_cast<uint64_t>(index), last = static_cast<uint64_t>(count) - 1;
  const uint64_t last_start = corpus_.validation().size() - static_cast<uint64_t>(context_) - 1;
  const uint64_t start = last == 0 ? 0 : i * last_start / last;
  const uint64_t padding = Rng(0, stream_id("padding/validation")).below(i, longest_padding() + 1);
  fill(window_at(corpus_.validation(), start, context_), padding, tokens, targets);
}

}  // namespace normlab
