#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace normlab {

namespace {

constexpr double kDecayShare = 0.2;  // of a wsd run

double decayed(const ScheduleConfig& c, double factor) { return c.min_lr + (c.lr - c.min_lr) * factor; }

}  // namespace

const std::vector<ScheduleDef>& all_schedules() {
  static const std::vector<ScheduleDef> schedules = {
      {"constant", "lr", false, false, [](const ScheduleConfig& c, double, double) { return c.lr; }},
      {"linear", "lr to min_lr on a line", true, true,
       [](const ScheduleConfig& c, double s, double length) { return decayed(c, 1 - std::min(1.0, s / length)); }},
      // Loshchilov & Hutter 2017, eq. 5, without restarts.
      {"cosine", "lr to min_lr on half a cosine", true, true,
       [](const ScheduleConfig& c, double s, double length) {
         return decayed(c, 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, s / length))));
       }},
      // Vaswani et al. 2017, eq. 3, scaled so that the peak is lr.
      {"inverse_sqrt", "lr sqrt(warmup / t) after warmup (lr / sqrt(t) without)", false, false,
       [](const ScheduleConfig& c, double s, double) {
         const double w = static_cast<double>(std::max<int64_t>(c.warmup, 1));
         return c.lr * std::sqrt(w / (w + s + (c.warmup > 0 ? 1 : 0)));
       }},
      // Hu et al. 2024 (MiniCPM): warmup, stable, decay over the last fifth.
      {"wsd", "lr, then to min_lr on a line over the last 20% of the run", true, true,
       [](const ScheduleConfig& c, double s, double length) {
         const double decay = std::max(1.0, std::floor(kDecayShare * static_cast<double>(c.steps)));
         return decayed(c, std::clamp((length - s) / decay, 0.0, 1.0));
       }},
  };
  return schedules;
}

const ScheduleDef* find_schedule(std::string_view name) {
  for (const ScheduleDef& schedule : all_schedules()) {
    if (schedule.name == name) return &schedule;
  }
  return nullptr;
}

double learning_rate(const ScheduleDef& schedule, const ScheduleConfig& config, int64_t update) {
  const int64_t s = update - 1;
  if (s < config.warmup) return config.lr * static_cast<double>(s + 1) / static_cast<double>(config.warmup);
  const auto length = static_cast<double>(std::max<int64_t>(1, config.steps - config.warmup));
  return schedule.rate(config, static_cast<double>(s - config.warmup), length);
}

}  // namespace normlab
