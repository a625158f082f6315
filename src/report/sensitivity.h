// How much the result depends on one numeric key, such as the learning rate: the sensitivity of Wortsman et al. 2023
// (arXiv:2309.14322, section 2.2), S = mean over the key's values of min(l, l0) - l*, where l is a run's final loss, l0
// its loss at the start (what a run that diverged counts as) and l* the least final loss of the group. 0 = it does not
// matter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/compare.h"

namespace normlab {

struct SensitivityRow {
  std::string group;         // "model.placement=pre, model.layers=24": the other keys that differ; "all" without any
  std::size_t runs = 0;      // values of the key
  bool validation = false;   // the losses are validation losses
  double sensitivity = 0;    // nats
  double best_loss = 0;      // l*
  std::string best_at;       // the key's value there
  std::string largest_good;  // the largest value whose run is stable or spiked; "-" = none
};

// Groups of runs that differ in `key` only (seeds averaged before, with mean_over_seeds); rates count equally. The loss
// is the validation loss where all runs of a group have one, else the mean of the last 20 training losses. UsageError
// where the key does not vary or is no number, or a group has one value twice.
std::vector<SensitivityRow> sensitivity(const std::vector<Run>& runs, std::string_view key);

std::string sensitivity_text(const std::vector<SensitivityRow>& rows, std::string_view key);
std::string sensitivity_csv(const std::vector<SensitivityRow>& rows);

}  // namespace normlab
