// Tiny stories, written on the spot: English enough to read, with structure far beyond neighbouring letters. Names fix
// pronouns, things that are found are carried and used in their own way, magic words return, counts and sums are right,
// what went into a bag comes out in reverse, quotes and brackets nest and close, days follow in order, the last line
// repeats the title. The grammar is data, in stories_rules.cpp; here is what a story keeps in mind.
#include <algorithm>
#include <array>
#include <map>

#include "core/rng.h"
#include "core/text.h"
#include "data/sources.h"

namespace normlab {

namespace {

// All characters of the grammar in byte order, so that the vocabulary depends neither on the seed nor on the size.
constexpr std::string_view kAlphabet = "\n !\"'(),.0123456789:?ABCDEFGHIJKLMNOPRSTVWYZabcdefghijklmnopqrstuvwxyz";

constexpr std::array kScenes = {"walk", "weather", "count", "sum",  "pack", "magic",
                                "tale", "days",    "hide",  "swap", "race", "ask"};
constexpr std::array kNumbers = {"one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
constexpr std::array kDays = {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"};

void capitalise(std::string& text) {
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
}

// The `close` that belongs to the bracket at text[open].
std::size_t matching(std::string_view text, std::size_t open) {
  int depth = 0;
  std::size_t at = open;
  do {
    if (text[at] == '[' || text[at] == '{') ++depth;
    if (text[at] == ']' || text[at] == '}') --depth;
    ++at;
  } while (depth > 0);
  return at - 1;
}

// One story: a pure function of (seed, number).
class Story {
 public:
  Story(uint64_t seed, uint64_t number) : rng_(seed, stream_id("stories"), number) {}

  std::string tell() {
    set_facts();
    std::string out;
    paragraph(out, "{title.name}");
    paragraph(out, "{start}");
    paragraph(out, "{find}");
    auto scenes = kScenes;
    const uint64_t count = 2 + draw(3);
    for (uint64_t i = 0; i < count; ++i) {
      std::swap(scenes[i], scenes[i + draw(scenes.size() - i)]);
      paragraph(out, str("{", scenes[i], "}"));
    }
    paragraph(out, "{use}");
    paragraph(out, "{home}{end}");
    out += '\n';
    return out;
  }

 private:
  uint64_t draw(uint64_t bound) { return rng_.below(next_++, bound); }

  void fact(std::string_view key, std::string_view rule) { facts_[std::string(key)] = expand(rule); }

  // A value no other fact has yet: friends have other names than heroes, and a bag holds different things.
  void distinct(std::string_view key, std::string_view rule) {
    std::string value;
    const auto taken = [&](const auto& other) { return other.second == value; };
    do value = expand(rule);
    while (std::any_of(facts_.begin(), facts_.end(), taken));
    facts_[std::string(key)] = value;
  }

  void person(const std::string& key, const std::string& prefix) {
    const bool girl = draw(2) == 0;
    distinct(key, girl ? "{girl}" : "{boy}");
    fact(prefix + "child", girl ? "girl" : "boy");
    fact(prefix + "he", girl ? "she" : "he");
    fact(prefix + "him", girl ? "her" : "him");
    fact(prefix + "his", girl ? "her" : "his");
  }

  void set_facts() {
    person("hero", "");
    person("friend", "friend.");
    fact("pet", "{animal}");
    fact("pet.name", "[Bo|Fluff|Kiki|Moppy|Nibs|Pip|Rusty|Spot|Toto|Wuff|Ziggy|Dot|Luna|Hops]");
    fact("tool.name", "{tool}");
    fact("tool.use", "{use " + facts_["tool.name"] + "}");
    fact("thing", "{look} {tool.name}");
    fact("bag.name", "{bag}");
    fact("title.name", "{title}");
    fact("word", "{syllable}{syllable}{syllable}[{syllable}|]");
    distinct("x", "{look} {object}");
    distinct("y", "{look} {object}");
    distinct("z", "{look} {object}");
    distinct("x.spot", "{spot}");
    distinct("spot.1", "{spot}");
    distinct("spot.2", "{spot}");
    fact("box", "{look} [box|chest|crate|drawer|suitcase]");

    const uint64_t n = 2 + draw(kNumbers.size() - 1);
    fact("n", str(n));
    fact("n.word", kNumbers[n - 1]);
    fact("n.many", "{many}");
    std::string list = kNumbers[0];
    for (uint64_t i = 1; i < n; ++i) list += str(", ", kNumbers[i]);
    capitalise(list);
    fact("n.list", list);

    const uint64_t p = 2 + draw(28), q = 2 + draw(18);
    fact("p", str(p));
    fact("q", str(q));
    fact("p+q", str(p + q));
    fact("p.many", "{many}");

    const uint64_t day = draw(kDays.size());
    for (uint64_t i = 0; i < 3; ++i) fact(str("day.", i + 1), kDays[(day + i) % kDays.size()]);

    std::array runners = {"{hero}", "{friend}", "{pet.name}"};
    for (uint64_t i = 0; i < 3; ++i) {
      std::swap(runners[i], runners[i + draw(3 - i)]);
      fact(str("r", i + 1), runners[i]);
    }
  }

  void paragraph(std::string& out, std::string_view rule) {
    std::string text = expand(rule);
    while (text.back() == ' ') text.pop_back();
    capitalise(text);
    out += text + '\n';
  }

  std::string expand(std::string_view rule) {
    std::string out;
    for (std::size_t at = 0; at < rule.size(); ++at) {
      if (rule[at] != '[' && rule[at] != '{') {
        out += rule[at];
        continue;
      }
      const std::size_t close = matching(rule, at);
      const std::string_view inside = rule.substr(at + 1, close - at - 1);
      out += rule[at] == '[' ? expand(alternative(inside)) : value(inside);
      at = close;
    }
    return out;
  }

  // One of the parts between the outermost bars.
  std::string_view alternative(std::string_view choices) {
    std::vector<std::string_view> parts;
    std::size_t begin = 0;
    for (std::size_t at = 0; at < choices.size(); ++at) {
      if (choices[at] == '[' || choices[at] == '{') at = matching(choices, at);
      if (choices[at] != '|') continue;
      parts.push_back(choices.substr(begin, at - begin));
      begin = at + 1;
    }
    parts.push_back(choices.substr(begin));
    return parts[draw(parts.size())];
  }

  std::string value(std::string_view key) {
    if (key.substr(0, 2) == "a ") {
      const std::string text = expand(key.substr(2));
      return (std::string_view("aeiou").find(text[0]) == std::string_view::npos ? "a " : "an ") + text;
    }
    std::string name(key);
    const bool capital = name[0] >= 'A' && name[0] <= 'Z';
    if (capital) name[0] = static_cast<char>(name[0] - 'A' + 'a');
    const auto fact = facts_.find(name);
    std::string text = fact != facts_.end() ? fact->second : expand(story_rules().at(name));
    if (capital) capitalise(text);
    return text;
  }

  Rng rng_;
  uint64_t next_ = 0;
  std::map<std::string, std::string> facts_;
};

}  // namespace

std::string stories_text(int64_t characters, uint64_t seed) {
  const auto size = static_cast<std::size_t>(characters);
  std::string out;
  for (uint64_t number = 0; out.size() < size; ++number) out += Story(seed, number).tell();
  out.resize(size);
  return out;
}

SourceText stories_source(const DataConfig& config) {
  const std::string text = stories_text(config.tokens, config.seed);
  SourceText out;
  for (const char c : kAlphabet) out.spelling.emplace_back(1, c);
  out.vocabulary = static_cast<int64_t>(kAlphabet.size());
  out.tokens.reserve(text.size());
  for (const char c : text) out.tokens.push_back(static_cast<uint16_t>(kAlphabet.find(c)));
  out.description = str("stories, seed ", config.seed);
  return out;
}

}  // namespace normlab
