// The sources of text, one file each, and what they share. A new source is one file, one line here and one in
// data_sources().
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/corpus.h"

namespace normlab {

SourceText stories_source(const DataConfig& config);
SourceText markov_source(const DataConfig& config);
SourceText text_source(const DataConfig& config);
SourceText tokens_source(const DataConfig& config);

// The first `characters` characters of the endless book of tiny stories number `seed`. ASCII; the same bytes on every
// platform.
std::string stories_text(int64_t characters, uint64_t seed);

// The grammar of the stories, by name of the rule.
const std::map<std::string_view, std::string_view>& story_rules();

// Row i: the probabilities of the states that follow state i. Square.
using Transitions = std::vector<std::vector<double>>;

// The distribution pi = pi P of an irreducible chain, by elimination without subtractions, so every entry is accurate
// to a few roundings (Grassmann, Taksar, Heyman 1985, Operations Research 33). DataError where no path leads back.
std::vector<double> stationary(Transitions transitions);

// -sum_i pi_i sum_j P_ij ln P_ij, nats per step.
double entropy_rate(const Transitions& transitions);

// The chain that `config` describes.
Transitions markov_transitions(const DataConfig& config);

}  // namespace normlab
