// The generated stories: the same on every platform, English in its letter statistics, and right in what spans
// sentences.
#include <map>
#include <regex>
#include <set>

#include "../test.h"
#include "core/rng.h"
#include "core/text.h"
#include "data/sources.h"

using namespace normlab;

namespace {

const std::string& book() {
  static const std::string text = stories_text(DataConfig().tokens, 1);
  return text;
}

// The complete stories: they are separated by an empty line; the last may be cut.
std::vector<std::string> stories() {
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (std::size_t end = book().find("\n\n"); end != std::string::npos; end = book().find("\n\n", begin)) {
    out.push_back(book().substr(begin, end - begin));
    begin = end + 2;
  }
  return out;
}

// Calls visit(match) for every match of `pattern`; returns their number.
template <class Visit>
int each_match(const char* pattern, const Visit& visit) {
  const std::regex regex(pattern);
  int count = 0;
  for (std::sregex_iterator match(book().begin(), book().end(), regex), end; match != end; ++match, ++count)
    visit(*match);
  return count;
}

}  // namespace

TEST_CASE("stories are the same bytes on every platform and differ by seed", "[data]") {
  // stream_id is FNV-1a; the value was seen with g++ 12 and clang++ 14.
  CHECK(stream_id(stories_text(20'000, 1)) == 0xb601d3f8u);
  CHECK(stories_text(20'000, 1) != stories_text(20'000, 2));
  CHECK(stories_text(20'000, 1) == book().substr(0, 20'000));
}

TEST_CASE("stories have exactly the size asked for and always the whole alphabet as vocabulary", "[data]") {
  for (const int64_t size : {1, 2, 1999, 1'000'000}) {
    DataConfig config;
    config.tokens = size;
    const SourceText text = stories_source(config);
    CHECK(static_cast<int64_t>(text.tokens.size()) == size);
    CHECK(text.vocabulary == 70);
  }
  const std::set<char> occurring(book().begin(), book().end());
  CHECK(occurring.size() == 70);
  const Corpus corpus(stories_source(DataConfig()), 0.1);
  CHECK(corpus.decode(corpus.encode(book().substr(0, 5000))) == book().substr(0, 5000));
  const std::vector<int32_t> first(corpus.train().begin(), corpus.train().begin() + 5000);
  CHECK(corpus.decode(first) == book().substr(0, 5000));
}

TEST_CASE("stories have the letter statistics of English", "[data]") {
  const Corpus corpus(stories_source(DataConfig()), 0.1);
  CHECK(corpus.context_free_entropy() > 2.8);
  CHECK(corpus.context_free_entropy() < 3.3);
  CHECK(corpus.bigram_entropy() > 2.2);
  CHECK(corpus.bigram_entropy() < 2.5);
}

TEST_CASE("stories do not repeat themselves", "[data]") {
  std::map<std::string, int> lines;
  int total = 0;
  for (const std::string& story : stories()) {
    for (const std::string& line : split(story, '\n')) ++lines[line], ++total;
  }
  // Titles are short and may recur; of all lines nine in ten occur once.
  CHECK(total > 5000);
  CHECK(static_cast<double>(lines.size()) > 0.9 * total);
}

TEST_CASE("the last line of a story repeats its title", "[data]") {
  CHECK(stories().size() > 500);
  for (const std::string& story : stories()) {
    const std::string title = story.substr(0, story.find('\n'));
    const std::string ending = " \"" + title + "\".";
    REQUIRE(story.size() > ending.size());
    REQUIRE(story.substr(story.size() - ending.size()) == ending);
  }
}

TEST_CASE("quotes and brackets of a story nest and close within their line", "[data]") {
  std::size_t deepest = 0;
  for (const std::string& story : stories()) {
    for (const std::string& line : split(story, '\n')) {
      INFO(line);
      std::string open;
      for (const char c : line) {
        const bool quote = c == '"' || c == '\'';
        if (c == '(' || (quote && (open.empty() || open.back() != c))) {
          open += c;
        } else if (c == ')' || quote) {
          REQUIRE(!open.empty());
          REQUIRE(open.back() == (quote ? c : '('));
          open.pop_back();
        }
        deepest = std::max(deepest, open.size());
      }
      REQUIRE(open.empty());
    }
  }
  CHECK(deepest == 4);  // "tale 'with a remark (with another (inside))'"
}

TEST_CASE("a name keeps its pronoun through all stories", "[data]") {
  std::map<std::string, std::set<std::string>> pronouns;
  each_match("([A-Z][a-z]+) put on (his|her) ", [&](const auto& match) { pronouns[match[1]].insert(match[2]); });
  std::set<std::string> both;
  for (const auto& [name, used] : pronouns) {
    INFO(name);
    CHECK(used.size() == 1);
    both.insert(used.begin(), used.end());
  }
  CHECK(pronouns.size() == 44);  // 22 girls, 22 boys
  CHECK(both == std::set<std::string>{"her", "his"});
}

TEST_CASE("a found tool lies in the same bag when it is needed", "[data]") {
  int checked = 0;
  for (const std::string& story : stories()) {
    std::smatch put, took;
    const std::string praised = R"re(\n.*(?:put it into|Into) (?:his|her) ([a-z]+))re";
    REQUIRE(std::regex_search(story, put, std::regex(praised)));
    REQUIRE(std::regex_search(
        story, took, std::regex(R"(took the ([a-z]+) out of (?:his|her) ([a-z]+)\. With the [a-z]+ ([a-z]+))")));
    CHECK(put[1] == took[2]);
    CHECK(took[1] == took[3]);
    if (++checked == 100) break;
  }
}

TEST_CASE("sums of the stories are right", "[data]") {
  const int sums = each_match(R"(([0-9]+) and ([0-9]+) make ([0-9]+))", [](const auto& match) {
    CHECK(*parse_int(match[1].str()) + *parse_int(match[2].str()) == *parse_int(match[3].str()));
  });
  CHECK(sums > 100);
}

TEST_CASE("counting in the stories ends at the number that was seen", "[data]") {
  const std::map<std::string, int> words = {{"two", 2}, {"three", 3}, {"four", 4},  {"five", 5},
                                            {"six", 6}, {"seven", 7}, {"eight", 8}, {"nine", 9}};
  const char* pattern =
      "(?:saw|found|met) ([a-z]+) [a-z]+ ([a-z]+)\\. .*\"One, ([a-z, ]+)!\" .*: there were ([0-9]) ([a-z]+)";
  const int counts = each_match(pattern, [&](const auto& match) {
    const auto counted = split(match[3].str(), ' ');
    CHECK(words.at(match[1]) == static_cast<int>(counted.size()) + 1);
    CHECK(counted.back() == match[1]);
    CHECK(str(words.at(match[1])) == match[4]);
    CHECK(match[2] == match[5]);
  });
  CHECK(counts > 100);
}

TEST_CASE("what was packed in a story comes out in reverse order", "[data]") {
  const char* pattern =
      "(?:first|in went) an? ([a-z ]+), then an? ([a-z ]+), and last an? ([a-z ]+)\\. .* out came the ([a-z ]+), then "
      "the "
      "([a-z ]+), then the ([a-z ]+)\\.";
  const int packs = each_match(pattern, [](const auto& match) {
    CHECK(match[1] == match[6]);
    CHECK(match[2] == match[5]);
    CHECK(match[3] == match[4]);
    CHECK(match[1] != match[2]);
  });
  CHECK(packs > 100);
}

TEST_CASE("days of a story follow each other and magic words are repeated letter by letter", "[data]") {
  const std::map<std::string, std::string> next = {
      {"Monday", "Tuesday"},  {"Tuesday", "Wednesday"}, {"Wednesday", "Thursday"}, {"Thursday", "Friday"},
      {"Friday", "Saturday"}, {"Saturday", "Sunday"},   {"Sunday", "Monday"}};
  const int days = each_match("On ([A-Z][a-z]+) .* On ([A-Z][a-z]+) .* On ([A-Z][a-z]+) ", [&](const auto& match) {
    CHECK(match[2] == next.at(match[1]));
    CHECK(match[3] == next.at(match[2]));
  });
  CHECK(days > 100);
  const int spells = each_match("'([a-z]+)',.*\"([a-z]+), ([a-z]+)!\"", [](const auto& match) {
    CHECK(match[1] == match[2]);
    CHECK(match[1] == match[3]);
  });
  CHECK(spells > 100);
}
