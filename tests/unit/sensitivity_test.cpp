// What `compare --sensitivity` and `compare --table` say of hand-made runs.
#include <cmath>

#include "core/text.h"
#include "normlab/error.h"
#include "report/sensitivity.h"
#include "test.h"

using namespace normlab;

namespace {

Run run_of(const std::string& name, const std::string& verdict, double first, double last, FlatConfig config) {
  Run run;
  run.name = name, run.verdict = verdict;
  // 20 equal losses at the end, so that the final loss is `last`
  std::string rows = str("step,loss\n1,", first, "\n");
  for (int step = 2; step <= 21; ++step) rows += str(step, ",", last, "\n");
  run.metrics = parse_csv(rows, name + ".csv");
  for (const auto& step : run.metrics.numbers("step")) run.steps.push_back(step.value());
  config["run.name"] = name;
  run.config = std::move(config);
  return run;
}

std::vector<Run> two_placements() {
  const auto config = [](const char* placement, const char* lr) {
    return FlatConfig{{"model.placement", placement}, {"train.lr", lr}};
  };
  return {
      run_of("a", "stable", 4, 2.5, config("pre", "1e-2")),  run_of("b", "stable", 4, 2, config("pre", "1e-3")),
      run_of("c", "diverged", 4, 9, config("pre", "1e-1")),  run_of("d", "stalled", 4, 3, config("post", "1e-3")),
      run_of("e", "spiked", 4, 2.4, config("post", "1e-4")), run_of("f", "stalled", 4, 3.4, config("post", "1e-2"))};
}

std::string refusal(const std::vector<Run>& runs, const std::string& key) {
  try {
    sensitivity(runs, key);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("sensitivity is the mean distance from the best of a group, a run that diverged counting as its start") {
  const auto rows = sensitivity(two_placements(), "train.lr");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].group == "model.placement=pre");
  CHECK(rows[0].sensitivity == Approx((0.5 + 0 + 2) / 3));  // 2.5, 2, and 4 for what diverged
  CHECK(rows[0].best_loss == 2);
  CHECK(rows[0].best_at == "1e-3");
  CHECK(rows[0].largest_good == "1e-2");
  CHECK(rows[1].sensitivity == Approx((0.6 + 0 + 1) / 3));
  CHECK(rows[1].largest_good == "1e-4");
  CHECK(sensitivity_csv(rows).rfind("group,runs,sensitivity,best_loss,best_at,largest_good\nmodel.placement=pre,3,0.83",
                                    0) == 0);
}

TEST_CASE("validation losses are taken where all have one") {
  std::vector<Run> runs = two_placements();
  runs.resize(3);
  runs[0].validation_loss = 2.25, runs[1].validation_loss = 2.75;  // none for the one that diverged
  const auto rows = sensitivity(runs, "train.lr");
  CHECK(rows[0].group == "all");
  CHECK(rows[0].best_at == "1e-2");
  CHECK(rows[0].sensitivity == Approx((0 + 0.5 + 1.75) / 3));
  runs[1].validation_loss.reset();
  CHECK(sensitivity(runs, "train.lr")[0].best_loss == 2);
}

TEST_CASE("sensitivity to a key that does not vary, is no number, or comes twice is refused") {
  std::vector<Run> runs = two_placements();
  CHECK(refusal(runs, "model.layers") ==
        "--sensitivity model.layers: the runs do not differ in it; they differ in model.placement, train.lr");
  CHECK(refusal(runs, "model.placement") == "--sensitivity model.placement: a has no number for it");
  runs.push_back(run_of("g", "stable", 4, 2, {{"model.placement", "pre"}, {"train.lr", "0.01"}}));
  CHECK(refusal(runs, "train.lr").find("two runs of model.placement=pre have ") != std::string::npos);
}

TEST_CASE("the summary of runs is one line each, in full precision, with the keys that differ") {
  std::vector<Run> runs = two_placements();
  runs.resize(2);
  runs[0].validation_loss = 1.0 / 3;
  CHECK(summary_csv(runs, "loss") ==
        "run,n,verdict,steps,first_loss,best_loss,final_loss,final_ci95,validation_loss,train.lr\n"
        "a,1,stable,21,4,2.5,2.5,,0.3333333333333333,1e-2\n"
        "b,1,stable,21,4,2,2,,,1e-3\n");
}
