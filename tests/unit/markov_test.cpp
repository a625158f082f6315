// The Markov source: stationary distribution and entropy rate against formulas, and its sample against both.
#include <cmath>

#include "../test.h"
#include "data/sources.h"

using namespace normlab;

namespace {

double binary_entropy(double p) { return -p * std::log(p) - (1.0 - p) * std::log(1.0 - p); }

}  // namespace

TEST_CASE("a chain of two states has the stationary distribution and entropy rate of the textbook", "[data]") {
  // pi = (b, a) / (a + b); rate = pi_0 H(a) + pi_1 H(b) (Cover and Thomas, Elements of Information Theory,
  // example 4.1.1).
  const double a = 0.3, b = 0.05;
  const Transitions chain = {{1.0 - a, a}, {b, 1.0 - b}};
  const std::vector<double> pi = stationary(chain);
  CHECK(pi[0] == Approx(b / (a + b)).epsilon(1e-15));
  CHECK(pi[1] == Approx(a / (a + b)).epsilon(1e-15));
  CHECK(entropy_rate(chain) == Approx((b * binary_entropy(a) + a * binary_entropy(b)) / (a + b)).epsilon(1e-14));
}

TEST_CASE("a periodic chain is solved too, where power iteration would swing for ever", "[data]") {
  // A walk on 0 - 1 - 2: half of the time in the middle, and only there is a choice, of two.
  const Transitions walk = {{0.0, 1.0, 0.0}, {0.5, 0.0, 0.5}, {0.0, 1.0, 0.0}};
  const std::vector<double> pi = stationary(walk);
  CHECK(pi[0] == Approx(0.25));
  CHECK(pi[1] == Approx(0.5));
  CHECK(pi[2] == Approx(0.25));
  CHECK(entropy_rate(walk) == Approx(0.5 * std::log(2.0)));
  CHECK_THROWS_AS(stationary({{1.0, 0.0}, {0.0, 1.0}}), DataError);
}

TEST_CASE("every random chain is irreducible, aperiodic and sparse as configured", "[data]") {
  for (const uint64_t seed : {1u, 2u, 3u}) {
    for (const auto& [states, branches] : {std::pair{2, 2}, {3, 2}, {64, 8}, {40, 40}}) {
      DataConfig config;
      config.seed = seed;
      config.states = states;
      config.branches = branches;
      const Transitions chain = markov_transitions(config);
      const std::vector<double> pi = stationary(chain);
      REQUIRE(static_cast<int>(chain.size()) == states);
      CHECK(chain[0][0] > 0.0);  // a way to stay: aperiodic
      for (std::size_t i = 0; i < chain.size(); ++i) {
        CHECK(chain[i][(i + 1) % chain.size()] > 0.0);  // a circle through all states: irreducible
        int successors = 0;
        double sum = 0.0, inflow = 0.0;
        for (std::size_t j = 0; j < chain.size(); ++j) {
          successors += chain[i][j] > 0.0 ? 1 : 0;
          sum += chain[i][j];
          inflow += pi[j] * chain[j][i];
        }
        CHECK(successors == branches);
        CHECK(sum == Approx(1.0).epsilon(1e-14));
        CHECK(inflow == Approx(pi[i]).epsilon(1e-13));
      }
    }
  }
}

TEST_CASE("the sample of a chain has the entropy rate as its bigram entropy", "[data]") {
  DataConfig config;
  config.source = "markov";
  const Corpus corpus = load_corpus(config, 64);
  const Transitions chain = markov_transitions(config);
  const std::vector<double> pi = stationary(chain);
  const double rate = entropy_rate(chain);
  REQUIRE(corpus.entropy_rate().has_value());
  CHECK(*corpus.entropy_rate() == rate);

  // The estimate is the mean of -ln P over n steps, less the fit to the sample, chi^2 / 2n with states * (branches - 1)
  // degrees of freedom. Five standard errors, doubled because steps depend on each other.
  double variance = 0.0, marginal = 0.0;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    marginal -= pi[i] * std::log(pi[i]);
    for (const double p : chain[i]) variance += p > 0.0 ? pi[i] * p * std::pow(-std::log(p) - rate, 2) : 0.0;
  }
  const auto n = static_cast<double>(corpus.train().size());
  const double fit = 64.0 * 7.0 / (2.0 * n);
  CHECK(std::abs(corpus.bigram_entropy() + fit - rate) < 10.0 * std::sqrt(variance / n));
  CHECK(std::abs(corpus.context_free_entropy() - marginal) < 0.02);
  CHECK(rate < 0.5 * marginal);  // there is something to learn
}

TEST_CASE("steps of the sample are steps of the chain, and ids are written as numbers", "[data]") {
  DataConfig config;
  config.source = "markov";
  config.tokens = 5000;
  config.states = 20;
  config.branches = 3;
  const Corpus corpus = load_corpus(config, 8);
  const Transitions chain = markov_transitions(config);
  for (std::size_t i = 1; i < corpus.train().size(); ++i) {
    REQUIRE(chain[corpus.train()[i - 1]][corpus.train()[i]] > 0.0);
  }
  CHECK(corpus.vocabulary() == 20);
  CHECK(corpus.decode(std::vector<int32_t>{3, 19, 0}) == "3 19 0");
  CHECK(corpus.encode("3 19 0") == std::vector<int32_t>{3, 19, 0});
  CHECK_THROWS_AS(corpus.encode("3 20"), DataError);
  config.seed = 2;
  CHECK(markov_source(config).tokens != std::vector<uint16_t>(corpus.train().begin(), corpus.train().end()));
}
