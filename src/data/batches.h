// The windows of a run. Which window is a pure function of (seed, update, sequence), so that accumulation, slots,
// threads, resume and evaluation cannot move it.
#pragma once

#include "data/corpus.h"

namespace normlab {

// Target of a position that takes no part in the loss.
constexpr int32_t kIgnored = -1;

class Batches {
 public:
  // `corpus` must outlive this, and fit `context` as load_corpus checks. `seed` is that of the run.
  Batches(const Corpus& corpus, uint64_t seed, int64_t context);

  // The window of `sequence` (from 0, over the whole batch) of `update` (from 1). Fills `context` tokens and the
  // targets, the same window one token later. The start is drawn evenly from all train().size() - context places where
  // a window fits.
  void train(int64_t update, int64_t sequence, int32_t* tokens, int32_t* targets) const;

  // Window `index` of the `count` of an evaluation: the same at every evaluation and for every run seed, the first at
  // the start of the validation part, the last at its end, the others evenly between (overlapping where the part is
  // short).
  void validation(int64_t index, int64_t count, int32_t* tokens, int32_t* targets) const;

 private:
  // Padding p > 0: the last k tokens of a window become the pad, k drawn evenly from 0 .. floor(2 p context), hence p
  // on average; never more than context - 2, so that one target remains. Targets of pads, and targets that would be
  // pads, are kIgnored.
  void fill(std::span<const uint16_t> window, uint64_t padding_draw, int32_t* tokens, int32_t* targets) const;
  uint64_t longest_padding() const;

  const Corpus& corpus_;
  uint64_t seed_;
  int64_t context_;
};

}  // namespace normlab
