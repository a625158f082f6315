// A probe beside a trainer whose parameters a test can set, and the windows that the probe looks at.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lab/probe.h"
#include "small_run.h"
#include "test.h"
#include "train/trainer.h"

struct ProbeRig {
  explicit ProbeRig(const std::vector<std::string>& sets, int64_t sequences = 1)
      : config(small_run(sets)),
        corpus(normlab::load_corpus(normlab::data_config(config), config.context)),
        batches(corpus, static_cast<uint64_t>(config.seed), config.context),
        model(normlab::model_config(config, corpus.vocabulary())),
        trainer(model, normlab::train_config(config), &batches, 1),
        probe(model, trainer.params(), corpus, static_cast<uint64_t>(config.seed), sequences),
        tokens(static_cast<std::size_t>(sequences * config.context)),
        targets(tokens.size()) {
    for (int64_t s = 0; s < sequences; ++s) {
      int32_t *in = tokens.data() + s * config.context, *out = targets.data() + s * config.context;
      if (config.data.validation > 0)
        batches.validation(s, sequences, in, out);
      else
        batches.train(0, s, in, out);
    }
  }
  int parameter(const std::string& name) {
    INFO(name);
    REQUIRE(trainer.params().find(name) >= 0);
    return trainer.params().find(name);
  }
  normlab::real* value(const std::string& name) { return trainer.params().value(parameter(name)); }
  int64_t count(const std::string& name) { return trainer.params().spec(parameter(name)).shape.count(); }
  void fill(const std::string& name, normlab::real x) { std::fill_n(value(name), count(name), x); }
  // What enters the first sub-layer: token embedding + position embedding, added in the model's precision.
  std::vector<std::vector<double>> embedded() {
    std::vector<std::vector<double>> x;
    const normlab::real *token = value("embedding.token.weight"), *position = value("embedding.position.weight");
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      std::vector<double> row;
      const int64_t place = static_cast<int64_t>(t) % config.context;
      for (int64_t j = 0; j < model.width; ++j)
        row.push_back(static_cast<double>(token[tokens[t] * model.width + j] + position[place * model.width + j]));
      x.push_back(row);
    }
    return x;
  }

  normlab::RunConfig config;
  normlab::Corpus corpus;
  normlab::Batches batches;
  normlab::ModelConfig model;
  normlab::Trainer trainer;
  normlab::Probe probe;
  std::vector<int32_t> tokens, targets;
};
