// A text whose best possible loss is known: a random sparse Markov chain, its entropy rate and a sample of it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/rng.h"
#include "core/text.h"
#include "data/sources.h"

namespace normlab {

namespace {

// Row i: integer weights of the states that may follow state i, 0 for the others. State i + 1 (cyclically) always may,
// so every state reaches every other: irreducible. State 0 may follow itself: aperiodic. The other successors are
// drawn. Integers, so that the sample is the same on every platform.
std::vector<std::vector<uint64_t>> weights(const DataConfig& config) {
  const auto states = static_cast<std::size_t>(config.states);
  std::vector<std::vector<uint64_t>> rows(states, std::vector<uint64_t>(states));
  for (std::size_t i = 0; i < states; ++i) {
    const Rng rng(config.seed, stream_id("markov/chain"), i);
    uint64_t draw = 0;
    // The product of two even draws: some successors are common, most are rare, none is negligible.
    const auto weight = [&] {
      const uint64_t first = 1 + rng.below(draw++, 32);
      return first * (1 + rng.below(draw++, 32));
    };
    rows[i][(i + 1) % states] = weight();
    int64_t chosen = 1;
    if (i == 0) {
      rows[0][0] = weight();
      ++chosen;
    }
    while (chosen < config.branches) {
      uint64_t& entry = rows[i][rng.below(draw++, states)];
      if (entry > 0) continue;
      entry = weight();
      ++chosen;
    }
  }
  return rows;
}

}  // namespace

Transitions markov_transitions(const DataConfig& config) {
  Transitions transitions;
  for (const auto& row : weights(config)) {
    const auto total = static_cast<double>(std::accumulate(row.begin(), row.end(), uint64_t{0}));
    std::vector<double>& p = transitions.emplace_back();
    for (const uint64_t weight : row) p.push_back(static_cast<double>(weight) / total);
  }
  return transitions;
}

std::vector<double> stationary(Transitions p) {
  const std::size_t states = p.size();
  // Takes out the last state: paths through it become direct steps.
  for (std::size_t last = states - 1; last > 0; --last) {
    const double leaving = std::accumulate(p[last].begin(), p[last].begin() + static_cast<std::ptrdiff_t>(last), 0.0);
    if (!(leaving > 0.0))
      throw DataError(str("the chain is not irreducible: no way from state ", last, " to the states below"));
    for (std::size_t i = 0; i < last; ++i) {
      p[i][last] /= leaving;
      for (std::size_t j = 0; j < last; ++j) p[i][j] += p[i][last] * p[last][j];
    }
  }
  std::vector<double> pi(states, 1.0);
  for (std::size_t j = 1; j < states; ++j) {
    pi[j] = 0.0;
    for (std::size_t i = 0; i < j; ++i) pi[j] += pi[i] * p[i][j];
  }
  const double total = std::accumulate(pi.begin(), pi.end(), 0.0);
  for (double& share : pi) share /= total;
  return pi;
}

double entropy_rate(const Transitions& transitions) {
  const std::vector<double> pi = stationary(transitions);
  double rate = 0.0;
  for (std::size_t i = 0; i < transitions.size(); ++i) {
    for (const double p : transitions[i]) {
      if (p > 0.0) rate -= pi[i] * p * std::log(p);
    }
  }
  return rate;
}

SourceText markov_source(const DataConfig& config) {
  std::vector<std::vector<uint64_t>> cumulative = weights(config);
  for (auto& row : cumulative) std::partial_sum(row.begin(), row.end(), row.begin());

  SourceText out;
  out.units = Units::numbers;
  out.vocabulary = config.states;
  out.entropy_rate = entropy_rate(markov_transitions(config));
  out.description =
      str("markov chain of ", config.states, " states, ", config.branches, " branches, seed ", config.seed);
  const Rng rng(config.seed, stream_id("markov/sample"));
  uint64_t state = rng.below(0, static_cast<uint64_t>(config.states));
  out.tokens.reserve(static_cast<std::size_t>(config.tokens));
  for (uint64_t i = 1; i <= static_cast<uint64_t>(config.tokens); ++i) {
    out.tokens.push_back(static_cast<uint16_t>(state));
    const auto& row = cumulative[state];
    const uint64_t draw = rng.below(i, row.back());
    state = static_cast<uint64_t>(std::upper_bound(row.begin(), row.end(), draw) - row.begin());
  }
  return out;
}

}  // namespace normlab
