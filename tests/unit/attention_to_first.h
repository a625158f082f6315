// A model small enough to work attention by hand: queries [3, 4] at position 1, keys [1, 1] and [1, -1], values 1 and 0
// in channel 0.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "../model_probe.h"
#include "../small_run.h"

struct TwoKeys : ModelProbe {
  explicit TwoKeys(const std::vector<std::string>& sets) : ModelProbe(model(sets), 1, 2) {
    set("embedding.token.weight", {1, 0, 0, 1});
    set("head.weight", {1, 0, 0, 1});
    set("layers.0.attention.q.weight", {0, 3, 0, 4});
    set("layers.0.attention.k.weight", {1, 1, 1, -1});
    set("layers.0.attention.v.weight", {1, 0, 0, 0});
    set("layers.0.attention.out.weight", {1, 0, 0, 1});
    clear("ffn.down.weight");
  }
  // Probability with which position 1 attends to position 0: the logit of channel 0.
  double to_first() { return logits({0, 1})[2]; }

 private:
  static normlab::ModelConfig model(const std::vector<std::string>& sets) {
    std::vector<std::string> all = {"model.layers=1",  "model.width=2",        "model.heads=1",
                                    "model.context=2", "model.placement=none", "model.bias=false"};
    all.insert(all.end(), sets.begin(), sets.end());
    return small_model(2, all);
  }
};

inline double attention_to_first(const std::vector<std::string>& sets, const std::vector<double>& q_gain) {
  TwoKeys model(sets);
  if (!q_gain.empty()) model.set("layers.0.attention.q_norm.weight", q_gain);
  return model.to_first();
}

inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
