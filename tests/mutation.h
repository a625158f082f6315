// Seeded mutation of small texts: whatever the bytes, a reader returns or throws a normlab::Error. Nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/rng.h"
#include "core/text.h"
#include "normlab/error.h"
#include "test.h"

// Draws for one case, in order.
class MutationDice {
 public:
  MutationDice(std::uint64_t seed, std::uint64_t number) : rng_(seed, normlab::stream_id("mutation"), number) {}
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(rng_.below(index_++, bound)); }

 private:
  normlab::Rng rng_;
  std::uint64_t index_ = 0;
};

// One text of the corpus with one to six edits: a bit flipped, a byte replaced, bytes that mean something to parsers
// inserted, a stretch removed, doubled or many times repeated, a piece of another text spliced in, the end cut off.
inline std::string mutated(const std::vector<std::string>& corpus, MutationDice& dice) {
  static const std::vector<std::string> kPieces = {"\"",
                                                   "'",
                                                   "\\",
                                                   "[",
                                                   "]",
                                                   "{",
                                                   "}",
                                                   ",",
                                                   ".",
                                                   "=",
                                                   ":",
                                                   "-",
                                                   "_",
                                                   "0",
                                                   "e",
                                                   "\n",
                                                   "\r",
                                                   "\r\n",
                                                   "\t",
                                                   "#",
                                                   "0x",
                                                   "\\u",
                                                   "\\ud800",
                                                   "\xef\xbb\xbf",
                                                   "\xc3",
                                                   "\xff",
                                                   "1e99",
                                                   "1e999",
                                                   "\"\"\"",
                                                   "nan",
                                                   "-inf",
                                                   "true",
                                                   "null",
                                                   "[[[[[[",
                                                   "{\"a\":{\"a\":",
                                                   std::string(1, '\0')};
  std::string text = corpus[dice.below(corpus.size())];
  for (std::size_t edits = 1 + dice.below(6); edits > 0; --edits) {
    const std::size_t at = dice.below(text.size() + 1);
    const std::size_t length = dice.below(1 + (dice.below(4) == 0 ? text.size() : 8));
    const std::string piece = text.substr(at, length);
    switch (dice.below(8)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << dice.below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(dice.below(256));
        break;
      case 2: text.insert(at, kPieces[dice.below(kPieces.size())]); break;
      case 3: text.erase(at, length); break;
      case 4: text.insert(at, piece); break;
      case 5:
        for (std::size_t copies = dice.below(20); copies > 0; --copies) text.insert(at, piece.substr(0, 16));
        break;
      case 6: {
        const std::string& other = corpus[dice.below(corpus.size())];
        text.insert(at, other.substr(dice.below(other.size() + 1), length));
        break;
      }
      default:
        if (dice.below(4) == 0) text.resize(at);
    }
  }
  return text;
}

struct MutationCount {
  int accepted = 0;
  int refused = 0;
};

// Calls reader(text) for `cases` mutated texts. The reader may check more about what it accepted. A typed Error must
// say something. The counts let a test see that both happened; a reader that never accepts has not been tested.
inline MutationCount mutate_and_read(const std::vector<std::string>& corpus, int cases, std::uint64_t seed,
                                     void (*reader)(const std::string&)) {
  MutationCount count;
  for (int i = 0; i < cases; ++i) {
    MutationDice dice(seed, static_cast<std::uint64_t>(i));
    const std::string text = mutated(corpus, dice);
    std::string failure;
    try {
      reader(text);
      ++count.accepted;
    } catch (const normlab::Error& error) {
      if (std::string(error.what()).empty()) failure = "an error without a message";
      ++count.refused;
    } catch (const std::exception& error) {
      failure = error.what();
    }
    if (!failure.empty()) {
      FAIL("case " << i << " of seed " << seed << ", " << normlab::quote(text, 2000)
                   << ": untyped failure: " << failure);
    }
  }
  return count;
}
