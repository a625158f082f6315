// A corpus: every token of a text, cut into a training and a validation part, with the entropies that tell what a loss
// is worth.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/error.h"
#include "normlab/real.h"

namespace normlab {

// The [data] section. Ranges are checked by load_corpus (ConfigError).
struct DataConfig {
  std::string source = "stories";  // a name in data_sources()
  std::string path;                // text and tokens only; must stay empty for the generated sources
  std::string tokenizer = "char";  // char | byte; text only
  double validation = 0.1;         // [0, 1): share of the tokens, the end of the text; 0 = no evaluation
  double padding = 0.0;            // [0, 0.5]: mean share of every window that is padding
  int64_t tokens = 1'000'000;      // [1, 1e9]: size of generated corpora
  int64_t states = 64;             // [2, 1024]: markov
  int64_t branches = 8;            // [2, states]: markov, successors of every state
  uint64_t seed = 1;  // of generated corpora; apart from run.seed, so that runs with other seeds see the same language
};

// How ids and text belong together. Numbers: an id is written as a decimal number, with blanks between.
enum class Units { characters, bytes, numbers };

// What a source delivers.
struct SourceText {
  std::vector<uint16_t> tokens;
  int64_t vocabulary = 0;  // ids are 0 .. vocabulary - 1
  Units units = Units::characters;
  std::vector<std::string> spelling;   // of every id, in byte order; empty for numbers
  std::optional<double> entropy_rate;  // nats per token, where it is known exactly
  std::string description;             // one line for people; begins with the file or the source
};

struct DataSource {
  std::string_view name;
  std::string_view summary;
  SourceText (*read)(const DataConfig&);
};

// Every source, in the order in which `normlab list data` shows them.
const std::vector<DataSource>& data_sources();

class Corpus {
 public:
  // The first floor((1 - validation) n) of the n tokens train, the others validate (the split of nanoGPT). `padding`
  // above 0 adds one id, the pad, to the vocabulary. DataError for a token that is not below the vocabulary.
  Corpus(SourceText text, double validation, double padding = 0.0);

  int64_t vocabulary() const { return text_.vocabulary + (padding_ > 0.0 ? 1 : 0); }  // including the pad
  std::span<const uint16_t> train() const { return std::span(text_.tokens).first(split_); }
  std::span<const uint16_t> validation() const { return std::span(text_.tokens).subspan(split_); }

  // Mean share of padding in a window, and the id that fills it (the last of the vocabulary; absent where padding is
  // 0).
  double padding() const { return padding_; }
  int32_t pad() const { return static_cast<int32_t>(text_.vocabulary); }

  // Nats per token, of the training part: what the best model reaches that knows nothing, or only the token before.
  // Plug-in estimates: where most pairs occur once, as with large vocabularies, the second is far too low.
  double context_free_entropy() const { return context_free_entropy_; }
  double bigram_entropy() const { return bigram_entropy_; }
  std::optional<double> entropy_rate() const { return text_.entropy_rate; }  // markov only, exact

  // The text of `ids`, the pad as "<pad>"; DataError for an id outside the vocabulary.
  std::string decode(std::span<const int32_t> ids) const;
  // The ids of `text`; DataError that names the first character (byte, number) the corpus does not have.
  std::vector<int32_t> encode(std::string_view text) const;

  // 16 hexadecimal digits that tell corpora apart: of every token, its spelling and the split (FNV-1a, 64 bit).
  std::string digest() const;

  const std::string& description() const { return text_.description; }

 private:
  int32_t id_of(std::string_view unit) const;

  SourceText text_;
  std::size_t split_;
  double padding_;
  double context_free_entropy_;
  double bigram_entropy_;
};

// Reads or generates the corpus and checks that one window of `context` + 1 tokens fits both parts (the training part
// alone where validation is 0). ConfigError for settings out of range, IoError for files that cannot be read, DataError
// for their content.
Corpus load_corpus(const DataConfig& config, int64_t context);

// -sum p ln p of the token frequencies, and the same given the token before: -sum p(a, b) ln p(b | a). Nats; ids below
// `vocabulary`.
double unigram_entropy(std::span<const uint16_t> tokens, int64_t vocabulary);
double bigram_entropy(std::span<const uint16_t> tokens, int64_t vocabulary);

}  // namespace normlab
