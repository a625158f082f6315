#include "data/corpus.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/text.h"
#include "core/utf8.h"
#include "data/sources.h"

namespace normlab {

namespace {

double entropy_of(std::span<const int64_t> counts, int64_t total) {
  double sum = 0.0;
  for (const int64_t count : counts) {
    if (count == 0) continue;
    const double p = static_cast<double>(count) / static_cast<double>(total);
    sum -= p * std::log(p);
  }
  return sum;
}

std::vector<int64_t> frequencies(std::span<const uint16_t> tokens, int64_t vocabulary) {
  std::vector<int64_t> counts(static_cast<std::size_t>(vocabulary));
  for (const uint16_t token : tokens) ++counts[token];
  return counts;
}

std::size_t split_of(const SourceText& text, double validation) {
  // (1 - 0.9) * 10 is a hair below 1 in binary; the nudge keeps the floor meant.
  const double share = (1.0 - validation) * (1.0 + 1e-12);
  const auto size = static_cast<std::size_t>(std::floor(share * static_cast<double>(text.tokens.size())));
  return std::min(size, text.tokens.size());
}

template <class T>
void require(bool valid, std::string_view key, T value, std::string_view expected) {
  if (!valid) throw ConfigError(str("data.", key, " = ", value, ": expected ", expected));
}

void check_ranges(const DataConfig& config) {
  const auto within = [](auto value, auto low, auto high) { return value >= low && value <= high; };  // false for nan
  require(within(config.validation, 0.0, 1.0) && config.validation < 1.0, "validation", config.validation,
          "0 <= validation < 1");
  require(within(config.padding, 0.0, 0.5), "padding", config.padding, "0 to 0.5");
  require(within(config.tokens, 1, 1'000'000'000), "tokens", config.tokens, "1 to 1000000000");
  require(within(config.states, 2, 1024), "states", config.states, "2 to 1024");
  if (config.source == "markov") {
    require(within(config.branches, 2, config.states), "branches", config.branches,
            str("2 to data.states = ", config.states));
  }
}

}  // namespace

const std::vector<DataSource>& data_sources() {
  static const std::vector<DataSource> sources = {
      {"stories", "tiny children's stories from an embedded generator; no file needed", stories_source},
      {"markov", "a random sparse Markov chain whose entropy rate is known exactly", markov_source},
      {"text", "a file, by UTF-8 character or by byte", text_source},
      {"tokens", "a file of little-endian uint16 ids, raw (nanoGPT) or with the header of llm.c", tokens_source},
  };
  return sources;
}

double unigram_entropy(std::span<const uint16_t> tokens, int64_t vocabulary) {
  return entropy_of(frequencies(tokens, vocabulary), static_cast<int64_t>(tokens.size()));
}

double bigram_entropy(std::span<const uint16_t> tokens, int64_t vocabulary) {
  if (tokens.size() < 2) return 0.0;
  const auto firsts = tokens.first(tokens.size() - 1);
  // The successors of every token, side by side: needs the memory of the text, not of vocabulary^2 pairs.
  const std::vector<int64_t> counts = frequencies(firsts, vocabulary);
  std::vector<std::size_t> place(counts.size());
  for (std::size_t id = 1; id < counts.size(); ++id)
    place[id] = place[id - 1] + static_cast<std::size_t>(counts[id - 1]);
  std::vector<uint16_t> successors(firsts.size());
  for (std::size_t i = 0; i < firsts.size(); ++i) successors[place[firsts[i]]++] = tokens[i + 1];

  double sum = 0.0;
  std::vector<int64_t> next(counts.size());
  std::size_t begin = 0;
  for (const int64_t count : counts) {
    const auto group = std::span(successors).subspan(begin, static_cast<std::size_t>(count));
    begin += group.size();
    for (const uint16_t id : group) ++next[id];
    for (const uint16_t id : group) {
      if (next[id] == 0) continue;
      const auto pairs = static_cast<double>(std::exchange(next[id], 0));
      sum -= pairs * std::log(pairs / static_cast<double>(count));
    }
  }
  return sum / static_cast<double>(firsts.size());
}

Corpus::Corpus(SourceText text, double validation, double padding)
    : text_(std::move(text)), split_(split_of(text_, validation)), padding_(padding) {
  const auto wrong =
      std::find_if(text_.tokens.begin(), text_.tokens.end(), [&](uint16_t token) { return token >= text_.vocabulary; });
  if (wrong != text_.tokens.end()) {
    throw DataError(str(text_.description, ": token ", wrong - text_.tokens.begin(), " has id ", *wrong,
                        ", the vocabulary has ids 0 to ", text_.vocabulary - 1));
  }
  context_free_entropy_ = unigram_entropy(train(), text_.vocabulary);
  bigram_entropy_ = normlab::bigram_entropy(train(), text_.vocabulary);
}

std::string Corpus::decode(std::span<const int32_t> ids) const {
  std::string out;
  for (const int32_t id : ids) {
    if (id < 0 || id >= vocabulary()) throw DataError(str("id ", id, " is outside the vocabulary of ", vocabulary()));
    if (text_.units == Units::numbers && !out.empty()) out += ' ';
    if (id == text_.vocabulary) {
      out += "<pad>";
    } else if (text_.units == Units::numbers) {
      out += str(id);
    } else {
      out += text_.spelling[static_cast<std::size_t>(id)];
    }
  }
  return out;
}

int32_t Corpus::id_of(std::string_view unit) const {
  if (text_.units == Units::numbers) {
    const auto id = parse_int(unit);
    if (id && *id >= 0 && *id < text_.vocabulary) return static_cast<int32_t>(*id);
    throw DataError(str(quote(unit), " is not an id of this corpus (0 to ", text_.vocabulary - 1, ")"));
  }
  const auto found = std::lower_bound(text_.spelling.begin(), text_.spelling.end(), unit);
  if (found == text_.spelling.end() || *found != unit) {
    const bool readable = unit.size() > 1 && utf8_length(unit, 0) == unit.size();
    throw DataError(str("character ", readable ? str("'", unit, "'") : quote(unit), " does not occur in the data (",
                        text_.description, ")"));
  }
  return static_cast<int32_t>(found - text_.spelling.begin());
}

std::vector<int32_t> Corpus::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  if (text_.units == Units::numbers) {
    for (const std::string& word : split(text, ' ')) {
      if (!word.empty()) ids.push_back(id_of(word));
    }
    return ids;
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text_.units == Units::bytes ? 1 : utf8_length(text, at);
    if (length == 0) throw DataError(str("the text is not valid UTF-8 at byte ", at, ": ", quote(text.substr(at, 1))));
    ids.push_back(id_of(text.substr(at, length)));
    at += length;
  }
  return ids;
}

Corpus load_corpus(const DataConfig& config, int64_t context) {
  check_ranges(config);
  const auto& sources = data_sources();
  const auto source =
      std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return s.name == config.source; });
  if (source == sources.end()) {
    std::vector<std::string> names;
    for (const auto& s : sources) names.emplace_back(s.name);
    throw ConfigError(str("data.source: unknown source ", quote(config.source), did_you_mean(config.source, names),
                          "; expected ", join(names, ", ")));
  }
  const bool reads_file = config.source == "text" || config.source == "tokens";
  if (reads_file && config.path.empty())
    throw ConfigError(str("data.path is empty: data.source = ", config.source, " reads a file"));
  // Training on made-up text where a file was meant would show only in the samples.
  if (!reads_file && !config.path.empty()) {
    throw ConfigError(str("data.path = ", quote(config.path), ": data.source = ", config.source,
                          " reads no file (source = \"text\" does)"));
  }

  Corpus corpus(source->read(config), config.validation, config.padding);
  const auto check = [&](std::string_view part, std::size_t size) {
    if (static_cast<int64_t>(size) > context) return;
    throw DataError(str(corpus.description(), ": the ", part, " part has ", size, " of ",
                        corpus.train().size() + corpus.validation().size(), " tokens (data.validation = ",
                        config.validation, "), a window needs model.context + 1 = ", context + 1));
  };
  check("training", corpus.train().size());
  if (config.validation > 0.0) check("validation", corpus.validation().size());
  return corpus;
}

std::string Corpus::digest() const {
  uint64_t hash = 14695981039346656037ull;
  const auto take = [&](uint64_t value) { hash = (hash ^ value) * 1099511628211ull; };
  for (const uint16_t token : text_.tokens) take(token);
  for (const std::string& unit : text_.spelling) {
    for (const char c : unit) take(static_cast<unsigned char>(c));
    take(256);  // the end of a spelling
  }
  take(split_);
  std::string digits(16, '0');
  for (std::size_t i = 16; i-- > 0; hash >>= 4) digits[i] = "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace normlab
