// Learning rates, worked by hand from the formulas in train/schedule.h.
#include "train/schedule.h"

#include <cmath>

#include "../test.h"

using namespace normlab;

namespace {

double rate(std::string_view schedule, const ScheduleConfig& config, int64_t update) {
  const ScheduleDef* def = find_schedule(schedule);
  REQUIRE(def != nullptr);
  return learning_rate(*def, config, update);
}

}  // namespace

TEST_CASE("warmup rises in equal steps to the peak and never uses a rate of zero, under every schedule") {
  for (const ScheduleDef& schedule : all_schedules()) {
    INFO(schedule.name);
    const ScheduleConfig config{.lr = 1, .warmup = 4, .steps = 100};
    CHECK(learning_rate(schedule, config, 1) == 0.25);
    CHECK(learning_rate(schedule, config, 2) == 0.5);
    CHECK(learning_rate(schedule, config, 3) == 0.75);
    CHECK(learning_rate(schedule, config, 4) == 1);
    CHECK(learning_rate(schedule, config, 5) <= 1);
    CHECK(learning_rate(schedule, config, 5) > 0.85);
  }
}

TEST_CASE("the constant schedule stays at the peak for ever") {
  const ScheduleConfig config{.lr = 0.5, .min_lr = 0, .warmup = 2, .steps = 10};
  CHECK(rate("constant", config, 3) == 0.5);
  CHECK(rate("constant", config, 10) == 0.5);
  CHECK(rate("constant", config, 1000) == 0.5);
}

TEST_CASE("the linear schedule falls on a line from the peak to the minimum and stays there") {
  const ScheduleConfig bare{.lr = 1, .min_lr = 0, .warmup = 0, .steps = 10};
  CHECK(rate("linear", bare, 1) == 1);
  CHECK(rate("linear", bare, 2) == Approx(0.9));
  CHECK(rate("linear", bare, 10) == Approx(0.1));
  CHECK(rate("linear", bare, 11) == 0);
  const ScheduleConfig config{.lr = 1, .min_lr = 0.5, .warmup = 2, .steps = 10};  // eight updates of decay
  CHECK(rate("linear", config, 3) == 1);
  CHECK(rate("linear", config, 7) == 0.75);
  CHECK(rate("linear", config, 11) == 0.5);
  CHECK(rate("linear", config, 1000) == 0.5);
}

TEST_CASE("the cosine schedule follows half a cosine and does not rise again after its end") {
  const ScheduleConfig config{.lr = 1e-3, .min_lr = 1e-4, .warmup = 0, .steps = 100};
  CHECK(rate("cosine", config, 1) == Approx(1e-3));
  CHECK(rate("cosine", config, 26) == Approx(8.682e-4).epsilon(1e-4));
  CHECK(rate("cosine", config, 51) == Approx(5.5e-4));
  for (const int64_t update : {101, 151, 176, 201, 100000}) CHECK(rate("cosine", config, update) == Approx(1e-4));
}

TEST_CASE("the inverse square root schedule is lr sqrt(warmup / t), and lr / sqrt(t) without warmup") {
  const ScheduleConfig warm{.lr = 1, .min_lr = 0, .warmup = 4, .steps = 200};
  CHECK(rate("inverse_sqrt", warm, 4) == 1);
  CHECK(rate("inverse_sqrt", warm, 9) == Approx(2.0 / 3));
  CHECK(rate("inverse_sqrt", warm, 16) == Approx(0.5));
  CHECK(rate("inverse_sqrt", warm, 100) == Approx(0.2));
  const ScheduleConfig cold{.lr = 3, .min_lr = 0, .warmup = 0, .steps = 200};
  CHECK(rate("inverse_sqrt", cold, 1) == 3);
  CHECK(rate("inverse_sqrt", cold, 4) == Approx(1.5));
  CHECK(rate("inverse_sqrt", cold, 900) == Approx(0.1));
}

TEST_CASE("the warmup-stable-decay schedule holds the peak until the last fifth of the run, then falls on a line") {
  const ScheduleConfig config{.lr = 1, .min_lr = 0, .warmup = 10, .steps = 100};  // decay over the last 20 updates
  for (const int64_t update : {10, 11, 50, 80, 81}) CHECK(rate("wsd", config, update) == 1);
  CHECK(rate("wsd", config, 82) == Approx(0.95));
  CHECK(rate("wsd", config, 91) == Approx(0.5));
  CHECK(rate("wsd", config, 100) == Approx(0.05));
  CHECK(rate("wsd", config, 101) == 0);
  CHECK(rate("wsd", config, 5000) == 0);
}

TEST_CASE("every schedule is finite, positive and at most the peak for any warmup and length") {
  for (const ScheduleDef& schedule : all_schedules()) {
    for (const int64_t steps : {1, 2, 3, 7, 10}) {
      for (const int64_t warmup : {0, 1, 2, 9, 10, 11, 1000}) {
        for (int64_t update = 1; update <= 3 * steps; ++update) {
          INFO(schedule.name << ", steps " << steps << ", warmup " << warmup << ", update " << update);
          const double lr = learning_rate(schedule, {.lr = 2, .min_lr = 0, .warmup = warmup, .steps = steps}, update);
          CHECK(std::isfinite(lr));
          CHECK(lr <= 2);
          CHECK((update > steps ? lr >= 0 : lr > 0));
          // A run that ends inside its warmup is a plain ramp.
          if (update <= warmup) CHECK(lr == 2 * static_cast<double>(update) / static_cast<double>(warmup));
        }
      }
    }
  }
}

TEST_CASE(
    "a schedule that says it does not depend on the run's length or the minimum gives the same rates with others") {
  const ScheduleConfig config{.lr = 1, .min_lr = 0, .warmup = 5, .steps = 100};
  ScheduleConfig longer = config, higher = config;
  longer.steps = 150;
  higher.min_lr = 0.5;
  for (const ScheduleDef& schedule : all_schedules()) {
    INFO(schedule.name);
    bool length_matters = false, minimum_matters = false;
    for (int64_t update = 1; update <= 100; ++update) {
      const double lr = learning_rate(schedule, config, update);
      length_matters = length_matters || lr != learning_rate(schedule, longer, update);
      minimum_matters = minimum_matters || lr != learning_rate(schedule, higher, update);
    }
    CHECK(length_matters == schedule.uses_steps);
    CHECK(minimum_matters == schedule.uses_min_lr);
  }
}
