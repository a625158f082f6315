// Learning-rate schedules: the rate of update t as a pure function.
#pragma once

#include <string_view>
#include <vector>

#include "normlab/real.h"

namespace normlab {

struct ScheduleConfig {
  double lr = 1e-3;     // peak
  double min_lr = 0;    // where a decay ends
  int64_t warmup = 0;   // updates
  int64_t steps = 200;  // length of the run: where a decay ends
};

// With s = t - 1, counted from 0: during warmup lr (s + 1) / warmup, so the first update uses lr / warmup and never 0.
// After it the schedule's factor; s beyond `steps` stays at the end value.
struct ScheduleDef {
  std::string_view name;
  std::string_view formula;
  bool uses_steps;  // the rate depends on the length of the run, so a finished run cannot be lengthened
  bool uses_min_lr;
  double (*rate)(const ScheduleConfig& c, double since_warmup, double length);  // s - warmup >= 0; steps - warmup >= 1
};

const std::vector<ScheduleDef>& all_schedules();
const ScheduleDef* find_schedule(std::string_view name);

double learning_rate(const ScheduleDef& schedule, const ScheduleConfig& config, int64_t update /* from 1 */);

}  // namespace normlab
