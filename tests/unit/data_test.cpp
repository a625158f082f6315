// Corpora from files, their entropies and parts, and the windows drawn from them.
#include <unistd.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "../test.h"
#include "core/files.h"
#include "core/text.h"
#include "data/batches.h"

using namespace normlab;

namespace {

struct TemporaryFile {
  std::filesystem::path path;
  explicit TemporaryFile(std::string_view content)
      : path(std::filesystem::temp_directory_path() / str("normlab-data-", ::getpid(), ".txt")) {
    write_file_atomically(path, content);
  }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

DataConfig file_config(const std::filesystem::path& path, std::string_view source = "text",
                       std::string_view tokenizer = "char") {
  DataConfig config;
  config.source = source;
  config.path = path.string();
  config.tokenizer = tokenizer;
  config.validation = 0.0;
  return config;
}

Corpus load(std::string_view content, std::string_view source = "text", std::string_view tokenizer = "char",
            double validation = 0.0, int64_t context = 1) {
  const TemporaryFile file(content);
  DataConfig config = file_config(file.path, source, tokenizer);
  config.validation = validation;
  return load_corpus(config, context);
}

// The tokens 0 .. count - 1, so that a token tells its place.
Corpus ramp(int count, double validation, double padding = 0.0) {
  SourceText text;
  text.tokens.resize(static_cast<std::size_t>(count));
  std::iota(text.tokens.begin(), text.tokens.end(), uint16_t{0});
  text.vocabulary = count;
  text.units = Units::numbers;
  return Corpus(std::move(text), validation, padding);
}

template <class E, class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return "no error";
}

bool has(const std::string& text, std::string_view part) {
  INFO(text << " / " << part);
  return text.find(part) != std::string::npos;
}

// `value` as little-endian bytes.
std::string little(uint32_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
  return out;
}

std::string llmc_header(uint32_t magic, uint32_t version, uint32_t count) {
  return little(magic, 4) + little(version, 4) + little(count, 4) + std::string(1012, '\0');
}

std::vector<uint16_t> ids(std::span<const uint16_t> part) { return {part.begin(), part.end()}; }

}  // namespace

TEST_CASE("entropies are those worked by hand", "[data]") {
  const double ln2 = std::log(2.0), ln3 = std::log(3.0);
  CHECK(load("aabb").context_free_entropy() == Approx(ln2));
  CHECK(load("aaaa").context_free_entropy() == 0.0);
  CHECK(load("abcabcabc").context_free_entropy() == Approx(ln3));
  CHECK(load("abcabcabc").bigram_entropy() == Approx(0.0).margin(1e-15));
  // aabb: after a come a and b, after b comes b: 2/3 ln 2.
  CHECK(load("aabb").bigram_entropy() == Approx(2.0 / 3.0 * ln2));
  // abacab: after a come b, c, b: 3/5 H(1/3); after b and c always a.
  CHECK(load("abacab").bigram_entropy() == Approx(0.6 * (ln3 - 2.0 / 3.0 * ln2)));
  // The validation part, the c's, does not count.
  CHECK(load("aabbcc", "text", "char", 1.0 / 3.0).context_free_entropy() == Approx(ln2));
  CHECK(load("aabbcc", "text", "char", 1.0 / 3.0).bigram_entropy() == Approx(2.0 / 3.0 * ln2));
}

TEST_CASE("the text is cut once, the beginning trains and the end validates", "[data]") {
  const Corpus corpus = load("abcdefghij", "text", "char", 0.3);
  CHECK(ids(corpus.train()) == std::vector<uint16_t>{0, 1, 2, 3, 4, 5, 6});
  CHECK(ids(corpus.validation()) == std::vector<uint16_t>{7, 8, 9});
  CHECK(corpus.vocabulary() == 10);  // characters of the validation part have ids too
  CHECK(ramp(10, 0.9).train().size() == 1);
  CHECK(ramp(11, 0.1).train().size() == 9);  // floor of 9.9
  CHECK(ramp(10, 0.0).validation().empty());
}

TEST_CASE("a text shorter than a window is refused with its size, the window and the split", "[data]") {
  for (const std::size_t size : {std::size_t{1}, std::size_t{15}, std::size_t{16}}) {
    const std::string error = error_of<DataError>([&] { load(std::string(size, 'x'), "text", "char", 0.0, 16); });
    CHECK(has(error, str("the training part has ", size, " of ", size, " tokens")));
    CHECK(has(error, "model.context + 1 = 17"));
    CHECK(has(error, "normlab-data-"));
  }
  CHECK(has(error_of<DataError>([] { load("", "text", "char", 0.0, 16); }), "the file is empty"));
  CHECK(load(std::string(17, 'x'), "text", "char", 0.0, 16).train().size() == 17);

  const std::string short_validation =
      error_of<DataError>([] { load(std::string(100, 'x'), "text", "char", 0.1, 16); });
  CHECK(has(short_validation, "the validation part has 10 of 100 tokens (data.validation = 0.1)"));
  CHECK(load(std::string(170, 'x'), "text", "char", 0.1, 16).validation().size() == 17);
}

TEST_CASE("targets are the inputs one token later", "[data]") {
  const Corpus corpus = load("abcdef");
  std::vector<int32_t> tokens(5), targets(5);
  Batches(corpus, 1, 5).train(1, 0, tokens.data(), targets.data());
  CHECK(corpus.decode(tokens) == "abcde");
  CHECK(corpus.decode(targets) == "bcdef");
}

TEST_CASE("every place where a window fits is drawn, and no other", "[data]") {
  const Corpus corpus = ramp(10, 0.3);  // 7 tokens train
  const Batches batches(corpus, 5, 3);
  std::map<int32_t, int> starts;
  for (int64_t update = 1; update <= 100; ++update) {
    for (int64_t sequence = 0; sequence < 10; ++sequence) {
      std::vector<int32_t> tokens(3), targets(3);
      batches.train(update, sequence, tokens.data(), targets.data());
      for (int32_t t = 0; t < 3; ++t) {
        REQUIRE(tokens[static_cast<std::size_t>(t)] == tokens[0] + t);
        REQUIRE(targets[static_cast<std::size_t>(t)] == tokens[0] + t + 1);
      }
      ++starts[tokens[0]];
    }
  }
  // 7 - 3 starts; each 250 times of 1000, give or take five standard deviations of 13.7.
  REQUIRE(starts.size() == 4);
  for (const auto& [start, count] : starts) CHECK(std::abs(count - 250) < 69);
  CHECK(starts.begin()->first == 0);
  CHECK(starts.rbegin()->first == 3);
}

TEST_CASE("a window depends on seed, update and sequence alone", "[data]") {
  const Corpus corpus = ramp(1000, 0.1);
  const auto window = [&](const Batches& batches, int64_t update, int64_t sequence) {
    std::vector<int32_t> tokens(4), targets(4);
    batches.train(update, sequence, tokens.data(), targets.data());
    return tokens[0];
  };
  const Batches first(corpus, 7, 4), again(corpus, 7, 4), other(corpus, 8, 4);
  std::vector<int32_t> forward, backward, elsewhere;
  for (int64_t i = 0; i < 32; ++i) forward.push_back(window(first, 1 + i / 8, i % 8));
  for (int64_t i = 31; i >= 0; --i) backward.insert(backward.begin(), window(again, 1 + i / 8, i % 8));
  for (int64_t i = 0; i < 32; ++i) elsewhere.push_back(window(other, 1 + i / 8, i % 8));
  CHECK(forward == backward);
  CHECK(forward != elsewhere);
  CHECK(std::set<int32_t>(forward.begin(), forward.end()).size() > 24);  // 32 draws of 896: about half a pair expected
}

TEST_CASE("validation windows are fixed, spread over the whole part and never touch training tokens", "[data]") {
  const Corpus corpus = ramp(40, 0.5);  // 20 .. 39 validate
  std::vector<int32_t> tokens(4), targets(4), starts;
  for (const uint64_t seed : {1u, 2u}) {
    for (int64_t i = 0; i < 4; ++i) {
      Batches(corpus, seed, 4).validation(i, 4, tokens.data(), targets.data());
      starts.push_back(tokens[0]);
      CHECK(targets[3] == tokens[0] + 4);
    }
  }
  // 16 places, 0 to 15 within the part: 0, 5, 10, 15.
  CHECK(starts == std::vector<int32_t>{20, 25, 30, 35, 20, 25, 30, 35});
  Batches(corpus, 1, 4).validation(0, 1, tokens.data(), targets.data());
  CHECK(tokens[0] == 20);
}

TEST_CASE("padding takes the tail of a window, its share on average, and its targets take no part", "[data]") {
  const Corpus corpus = ramp(100, 0.5, 0.2);
  CHECK(corpus.vocabulary() == 101);
  CHECK(corpus.decode(std::vector<int32_t>{7, 100}) == "7 <pad>");
  const Batches batches(corpus, 3, 10);
  std::map<int, int> lengths;
  std::vector<int32_t> tokens(10), targets(10);
  for (int64_t update = 1; update <= 5000; ++update) {
    batches.train(update, 0, tokens.data(), targets.data());
    const auto pads = std::count(tokens.begin(), tokens.end(), 100);
    ++lengths[static_cast<int>(pads)];
    for (int64_t t = 0; t < 10; ++t) {
      const auto at = static_cast<std::size_t>(t);
      const int32_t token = t < 10 - pads ? tokens[0] + static_cast<int32_t>(t) : 100;
      const bool scored = pads == 0 || t + 1 < 10 - pads;
      REQUIRE(tokens[at] == token);
      REQUIRE(targets[at] == (scored ? token + 1 : kIgnored));
    }
  }
  // 0 to 4 pads, 1000 times each, give or take five standard deviations of 28.3.
  REQUIRE(lengths.size() == 5);
  for (const auto& [length, count] : lengths) CHECK(std::abs(count - 1000) < 142);
  CHECK(lengths.rbegin()->first == 4);
}

TEST_CASE("the heaviest padding leaves a target in every window, validation windows included", "[data]") {
  const Corpus corpus = ramp(100, 0.5, 0.5);
  for (const int64_t context : {1, 2, 3, 8}) {
    const auto size = static_cast<std::size_t>(context);
    std::vector<int32_t> tokens(size), targets(size);
    std::set<std::ptrdiff_t> pads;
    for (int64_t i = 0; i < 200; ++i) {
      Batches(corpus, 1, context).train(i + 1, 3, tokens.data(), targets.data());
      REQUIRE(targets[0] == tokens[0] + 1);
      Batches(corpus, 1, context).validation(i, 200, tokens.data(), targets.data());
      REQUIRE(targets[0] == tokens[0] + 1);
      pads.insert(std::count(tokens.begin(), tokens.end(), corpus.pad()));
      std::vector<int32_t> other(size);
      Batches(corpus, 2, context).validation(i, 200, other.data(), targets.data());
      REQUIRE(other == tokens);  // whatever the seed of the run
    }
    CHECK(*pads.rbegin() == std::max<int64_t>(context - 2, 0));
  }
}

TEST_CASE("characters are UTF-8 code points in code point order", "[data]") {
  // U+00E9, U+20AC, U+1F600 between ASCII; the byte order mark at the start is no character, CR and NUL are.
  const std::string text = "\xEF\xBB\xBFz\xF0\x9F\x98\x80\xE2\x82\xAC\xC3\xA9\r\n" + std::string(1, '\0') + "z";
  const Corpus corpus = load(text);
  CHECK(ids(corpus.train()) == std::vector<uint16_t>{3, 6, 5, 4, 2, 1, 0, 3});
  CHECK(corpus.vocabulary() == 7);
  CHECK(corpus.decode(corpus.encode("\xE2\x82\xACz\xC3\xA9")) == "\xE2\x82\xACz\xC3\xA9");
  const std::string error = error_of<DataError>([&] { corpus.encode("zq"); });
  CHECK(has(error, "character 'q' does not occur in"));
  CHECK(has(error_of<DataError>([&] { corpus.encode("z\xFF"); }), "not valid UTF-8 at byte 1"));
  CHECK(
      has(error_of<DataError>([&] { corpus.decode(std::vector<int32_t>{7}); }), "id 7 is outside the vocabulary of 7"));
  CHECK(has(error_of<DataError>([&] { corpus.decode(std::vector<int32_t>{-1}); }), "id -1"));
}

TEST_CASE("text that is not UTF-8 is refused by character with the offset and kept by byte", "[data]") {
  // A lone byte, a broken and a cut character, UTF-16. (Octal, because a hexadecimal escape would swallow the letter
  // behind it.)
  const std::map<std::string, int> damaged = {{"ab\222z", 2}, {"\311A", 0}, {"abc\342\202", 3}, {"\377\376a", 0}};
  for (const auto& entry : damaged) {
    const std::string& text = entry.first;
    const std::string error = error_of<DataError>([&] { load(text); });
    CHECK(has(error, str("not valid UTF-8 at byte ", entry.second, ":")));
    CHECK(has(error, "data.tokenizer = \"byte\""));
    const Corpus corpus = load(text, "text", "byte");
    CHECK(corpus.vocabulary() == 256);
    const std::vector<int32_t> all(corpus.train().begin(), corpus.train().end());
    CHECK(corpus.decode(all) == text);
    CHECK(corpus.encode(text) == all);
  }
  const Corpus marked = load("\xEF\xBB\xBF\r\n", "text", "byte");
  CHECK(ids(marked.train()) == std::vector<uint16_t>{0xEF, 0xBB, 0xBF, 13, 10});
}

TEST_CASE("token files are read raw and with the header of llm.c", "[data]") {
  const std::string body = little(7, 2) + little(0x1234, 2) + little(300, 2);
  const std::vector<uint16_t> expected = {7, 0x1234, 300};
  const Corpus raw = load(body, "tokens");
  CHECK(ids(raw.train()) == expected);
  CHECK(raw.vocabulary() == 0x1235);
  CHECK(raw.decode(std::vector<int32_t>{7, 300}) == "7 300");
  CHECK(ids(load(llmc_header(20240520, 1, 3) + body, "tokens").train()) == expected);

  CHECK(load(little(65535, 2) + little(0, 2), "tokens").vocabulary() == 65536);
}

TEST_CASE("damaged token files are refused", "[data]") {
  const std::string body = little(7, 2) + little(8, 2) + little(9, 2);
  const auto error = [](const std::string& content) { return error_of<DataError>([&] { load(content, "tokens"); }); };
  CHECK(has(error(""), "the file has no tokens"));
  CHECK(has(error("abc"), "3 bytes, not a whole number of uint16 tokens"));
  CHECK(has(error(llmc_header(20240520, 1, 4) + body), "promises 4 tokens, so 1032 bytes; the file has 1030"));
  CHECK(has(error(llmc_header(20240520, 1, 2) + body), "promises 2 tokens, so 1028 bytes; the file has 1030"));
  CHECK(has(error(llmc_header(20240520, 1, 0)), "the file has no tokens"));
  CHECK(has(error(llmc_header(20240520, 2, 3) + body), "version 2, expected 1"));
  CHECK(has(error(llmc_header(20240520, 1, 3).substr(0, 100)), "the file has 100"));
  CHECK(has(error(llmc_header(20240801, 7, 3) + body + body), "magic 20240801; only uint16 ids"));
}

TEST_CASE("an id outside the vocabulary is refused with id, place and vocabulary", "[data]") {
  SourceText text;
  text.tokens = {1, 2, 63, 64};
  text.vocabulary = 64;
  text.description = "ids.bin";
  CHECK(error_of<DataError>([&] { Corpus(text, 0.0); }) ==
        "ids.bin: token 3 has id 64, the vocabulary has ids 0 to 63");
}

TEST_CASE("wrong data settings are refused by name", "[data]") {
  const auto error = [](auto change) {
    DataConfig config;
    config.tokens = 1000;
    change(config);
    return error_of<ConfigError>([&] { load_corpus(config, 8); });
  };
  CHECK(has(error([](DataConfig& c) { c.source = "storys"; }), "(did you mean 'stories'?)"));
  CHECK(has(error([](DataConfig& c) { c.source = "text"; }), "data.path is empty"));
  CHECK(has(error([](DataConfig& c) { c.path = "my.txt"; }), "'my.txt': data.source = stories reads no file"));
  CHECK(has(error([](DataConfig& c) { c.source = "text", c.path = "x", c.tokenizer = "chars"; }),
            "(did you mean 'char'?)"));
  CHECK(has(error([](DataConfig& c) { c.validation = 1.0; }), "data.validation = 1: expected 0 <= validation < 1"));
  CHECK(has(error([](DataConfig& c) { c.validation = std::nan(""); }), "data.validation = nan"));
  CHECK(has(error([](DataConfig& c) { c.padding = 0.6; }), "data.padding = 0.6: expected 0 to 0.5"));
  CHECK(has(error([](DataConfig& c) { c.tokens = 0; }), "data.tokens = 0: expected 1 to 1000000000"));
  CHECK(has(error([](DataConfig& c) { c.states = 1; }), "data.states = 1: expected 2 to 1024"));
  CHECK(has(error([](DataConfig& c) { c.source = "markov", c.branches = 65; }),
            "data.branches = 65: expected 2 to data.states = 64"));
}

TEST_CASE("missing files and directories are errors of input and output", "[data]") {
  const auto folder = std::filesystem::temp_directory_path();
  for (const char* source : {"text", "tokens"}) {
    const std::string missing =
        error_of<IoError>([&] { load_corpus(file_config(folder / "normlab-no-such-file", source), 8); });
    CHECK(has(missing, "normlab-no-such-file"));
    CHECK(has(error_of<IoError>([&] { load_corpus(file_config(folder, source), 8); }), folder.filename().string()));
  }
}

TEST_CASE("tiny Shakespeare has the published size, vocabulary and split", "[data]") {
  const auto path = shared_folder() / "data" / "tinyshakespeare.txt";
  NORMLAB_SKIP_UNLESS(std::filesystem::exists(path), "tinyshakespeare.txt is not here");
  DataConfig config = file_config(path);
  config.validation = 0.1;
  const Corpus corpus = load_corpus(config, 256);
  // As nanoGPT's data/shakespeare_char/readme.md and prepare.py print them.
  CHECK(corpus.vocabulary() == 65);
  CHECK(corpus.train().size() == 1'003'854);
  CHECK(corpus.validation().size() == 111'540);
}
