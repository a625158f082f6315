// Means over seeds: which runs are averaged, over how many at each step, and the interval of the mean.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "normlab/error.h"
#include "report/compare.h"
#include "test.h"

using namespace normlab;

namespace {

Run run_of(const std::string& name, const std::string& csv, FlatConfig config) {
  Run run;
  run.name = name;
  run.metrics = parse_csv(csv, name + ".csv");
  for (const auto& step : run.metrics.numbers("step")) run.steps.push_back(step.value());
  config["run.name"] = name;
  run.config = std::move(config);
  return run;
}

// Three seeds of one configuration, the third aborted after step 2, and a run of another.
std::vector<Run> three_and_one() {
  return {run_of("post-1", "step,loss,val_loss\n1,1,\n2,2,4\n3,3,\n", {{"run.seed", "1"}, {"model.norm", "a"}}),
          run_of("pre", "step,loss,val_loss\n1,9,\n2,8,\n3,7,\n", {{"run.seed", "1"}, {"model.norm", "b"}}),
          run_of("post-2", "step,loss,val_loss\n1,2,\n2,4,8\n3,6,\n", {{"run.seed", "2"}, {"model.norm", "a"}}),
          run_of("post-30", "step,loss,val_loss\n1,6,\n2,3,\n", {{"run.seed", "30"}, {"model.norm", "a"}})};
}

std::vector<std::string> names_of(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  for (const Run& run : runs) names.push_back(run.name);
  return names;
}

std::string mean_name(const std::vector<std::string>& names) {
  std::vector<Run> runs;
  for (const std::string& name : names)
    runs.push_back(run_of(name, "step,loss\n1,2\n", {{"run.seed", name}, {"model.norm", "a"}}));
  return mean_over_seeds(runs).at(0).name;
}

}  // namespace

TEST_CASE("the factor of a 95 % interval is that of the tables of Student's t") {
  // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, column 0.975.
  for (const auto& [degrees, wanted] : {std::pair{1, 12.706},
                                        {2, 4.303},
                                        {3, 3.182},
                                        {4, 2.776},
                                        {5, 2.571},
                                        {6, 2.447},
                                        {9, 2.262},
                                        {10, 2.228},
                                        {29, 2.045},
                                        {30, 2.042},
                                        {100, 1.984}}) {
    INFO(degrees);
    CHECK(std::abs(student_t_95(degrees) - wanted) <= 0.0005);
  }
  CHECK(student_t_95(100001) == Approx(1.959964).epsilon(1e-4));  // the normal distribution's
}

TEST_CASE("the interval of a mean is t s / sqrt(n), and there is none of a single value") {
  // 1, 2, 6: mean 3, s^2 = (4 + 1 + 9) / 2 = 7, half width 4.302653 sqrt(7 / 3).
  CHECK(mean_interval({1, 2, 6}).mean == Approx(3));
  CHECK(mean_interval({1, 2, 6}).half_width == Approx(6.572408).epsilon(1e-5));
  CHECK(mean_interval({5, 5, 5, 5}).half_width == 0);
  CHECK(mean_interval({5}).mean == 5);
  CHECK(std::isnan(mean_interval({5}).half_width));
  CHECK(std::isnan(mean_interval({1, std::nan("")}).mean));
}

TEST_CASE("runs that differ in their seed only become one mean, with the number of runs at each step") {
  const std::vector<Run> runs = mean_over_seeds(three_and_one());
  CHECK(names_of(runs) == std::vector<std::string>{"post", "pre"});
  CHECK(runs[0].config.at("run.seed") == "1, 2, 30");
  CHECK(runs[1].seeds.empty());
  const Curve curve = run_curve(runs[0], "loss");
  CHECK(curve.steps == std::vector<double>{1, 2, 3});
  CHECK(curve.values == std::vector<double>{3, 3, 4.5});
  const SeedSpread spread = seed_spread(runs[0], "loss");
  CHECK(spread.n == std::vector<std::int64_t>{3, 3, 2});
  CHECK(spread.half_width[0] == Approx(6.572408).epsilon(1e-5));
  CHECK(spread.half_width[2] == Approx(12.706205 * 1.5));  // s^2 = 4.5, s / sqrt(2) = 1.5
  // Evaluated at step 2 by two of them.
  CHECK(run_curve(runs[0], "val_loss").steps == std::vector<double>{2});
  CHECK(run_curve(runs[0], "val_loss").values == std::vector<double>{6});
  CHECK(seed_spread(runs[0], "val_loss").n == std::vector<std::int64_t>{2});
}

TEST_CASE("a mean takes each value at its own step, whatever steps the others have") {
  const std::vector<Run> runs =
      mean_over_seeds({run_of("a", "step,loss\n50,1\n100,2\n150,3\n", {{"run.seed", "1"}, {"k", "v"}}),
                       run_of("b", "step,loss\n20,10\n100,20\n", {{"run.seed", "2"}, {"k", "v"}})});
  CHECK(run_curve(runs[0], "loss").steps == std::vector<double>{20, 50, 100, 150});
  CHECK(run_curve(runs[0], "loss").values == std::vector<double>{10, 1, 11, 3});
  CHECK(seed_spread(runs[0], "loss").n == std::vector<std::int64_t>{1, 1, 2, 1});
}

TEST_CASE("the table of means says how many runs reached the end, the interval of their final losses and each n") {
  std::vector<Run> seeds = three_and_one();
  for (const std::size_t i : {0u, 1u, 2u}) seeds[i].verdict = "stable";
  seeds[3].verdict = "interrupted";
  seeds[0].validation_loss = 4, seeds[2].validation_loss = 8;
  // Final losses: 2 and 4, so 3 and 12.706205 sqrt(2 / 2); of the mean curve (3 + 3 + 4.5) / 3 = 3.5.
  CHECK(compare_table(mean_over_seeds(seeds), "loss") ==
        "run   verdict                  n       steps  first loss  best loss  final loss      ±95%  val loss  "
        "model.norm  run.seed\n"
        "post  2 stable, 1 interrupted  2 of 3      3      3.0000     3.0000      3.5000  ±12.7062    6.0000  "
        "a           1, 2, 30\n"
        "pre   stable                   1           3      9.0000     7.0000      8.0000         -         -  "
        "b           1\n"
        "note: post is the mean over post-1, post-2, post-30; loss: n = 3 to step 2, n = 2 to step 3.\n"
        "note: post: the val loss is that of 2 of 3 runs.\n");
}

TEST_CASE("the CSV of means has mean, interval and number of runs for each of them") {
  CHECK(compare_csv(mean_over_seeds({run_of("a", "step,loss\n1,1\n2,5\n", {{"run.seed", "1"}, {"k", "v"}}),
                                     run_of("b", "step,loss\n1,1\n", {{"run.seed", "2"}, {"k", "v"}}),
                                     run_of("c", "step,loss\n1,7\n3,nan\n", {{"run.seed", "1"}, {"k", "w"}})}),
                    "loss") ==
        "step,a mean,a ci95,a n,c mean,c ci95,c n\n"
        "1,1,0,2,7,,1\n"
        "2,5,,1,,,\n"
        "3,,,,nan,,1\n");
}

TEST_CASE("the chart of a mean has a band around its line, the number of runs in words and only finite coordinates") {
  const std::vector<Run> runs = mean_over_seeds(three_and_one());
  for (const bool log : {false, true}) {
    const Chart chart = compare_chart(runs, "loss", {1, log, 760});
    CHECK(chart.series[0].name == "post (mean of 3)");
    CHECK(chart.series[0].y == std::vector<double>{3, 3, 4.5});
    CHECK(chart.series[0].band[0] == Approx(6.572408).epsilon(1e-5));
    CHECK(chart.series[1].band.empty());
    const std::string svg = chart_svg(chart);
    CHECK(svg.find("n = 3 to step 2, n = 2 to step 3") != std::string::npos);
    CHECK(svg.find("Bands: 95 % confidence interval of the mean") != std::string::npos);
    CHECK(svg.find("\"band c0 d0\"") != std::string::npos);
    CHECK(svg.find("\"band c1 d0\"") == std::string::npos);
    CHECK(svg.find("nan") == std::string::npos);
    // The lower end, 3 - 6.6, is no value that a logarithmic axis would leave out.
    CHECK(svg.find("left out") == std::string::npos);
  }
}

TEST_CASE("a band covers mean plus and minus the interval at its steps and has gaps where there is none") {
  Chart chart;
  chart.series = {{"a", {0, 1, 2, 3, 4, 5}, {2, 2, 2, 2, 2, 2}, {}, {}}};
  chart.series[0].band = {1, 1, std::nan(""), 0.5, 0.5, 0.5};
  const std::string svg = chart_svg(chart);
  const std::size_t at = svg.find("\"band c0 d0\" d=\"");
  REQUIRE(at != std::string::npos);
  const std::string path = svg.substr(at + 16, svg.find('"', at + 16) - at - 16);
  CHECK(std::count(path.begin(), path.end(), 'M') == 2);
  CHECK(std::count(path.begin(), path.end(), 'Z') == 2);
  // Heights in pixels: the first stretch is twice as high as the second, both centred where the line is.
  std::vector<double> y;
  for (const std::string& stretch : split(path, 'Z')) {
    if (stretch.empty()) continue;
    double low = 1e9, high = -1e9;
    std::string points = stretch.substr(1);
    std::replace(points.begin(), points.end(), 'L', ' ');
    const std::vector<std::string> numbers = split(points, ' ');
    for (std::size_t i = 1; i < numbers.size(); i += 2) {
      low = std::min(low, *parse_double(numbers[i])), high = std::max(high, *parse_double(numbers[i]));
    }
    y.push_back(low), y.push_back(high);
  }
  REQUIRE(y.size() == 4);
  CHECK(y[1] - y[0] == Approx(2 * (y[3] - y[2])).epsilon(1e-3));
  CHECK(y[0] + y[1] == Approx(y[2] + y[3]).epsilon(1e-3));
}

TEST_CASE("a seed that diverged makes the mean non-finite at that step and is named") {
  const std::vector<Run> runs =
      mean_over_seeds({run_of("a-1", "step,loss\n1,1\n2,nan\n", {{"run.seed", "1"}, {"k", "v"}}),
                       run_of("a-2", "step,loss\n1,3\n2,3\n3,4\n", {{"run.seed", "2"}, {"k", "v"}})});
  const Curve curve = run_curve(runs[0], "loss");
  CHECK(curve.values[0] == 2);
  CHECK(std::isnan(curve.values[1]));
  CHECK(curve.values[2] == 4);
  const std::string table = compare_table(runs, "loss");
  CHECK(table.find("note: a is the mean over a-1, a-2; loss: n = 2 to step 2, n = 1 to step 3.\n") !=
        std::string::npos);
  CHECK(table.find("note: a-1: loss non-finite from step 2; where it is, so is the mean.\n") != std::string::npos);
}

TEST_CASE("each seed is smoothed by itself before the mean is taken") {
  const std::vector<Run> runs =
      mean_over_seeds({run_of("a", "step,loss\n1,2\n2,4\n3,6\n", {{"run.seed", "1"}, {"k", "v"}}),
                       run_of("b", "step,loss\n1,10\n2,20\n", {{"run.seed", "2"}, {"k", "v"}})});
  // Means over two steps: 2, 3, 5 and 10, 15.
  CHECK(compare_chart(runs, "loss", {2, false, 760}).series[0].y == std::vector<double>{6, 9, 5});
  CHECK(compare_chart(runs, "loss", {2, false, 760}).series[0].raw == std::vector<double>{6, 12, 6});
}

TEST_CASE("a run without a config, or alone in its configuration, stays itself beside the means") {
  std::vector<Run> runs = three_and_one();
  runs[0].config.clear();
  runs[2].config.clear();
  CHECK(names_of(mean_over_seeds(runs)) == std::vector<std::string>{"post-1", "pre", "post-2", "post-30"});
}

TEST_CASE("the same seed twice in one mean is refused: it would look surer than it is") {
  std::vector<Run> runs = three_and_one();
  runs.push_back(runs[0]);
  runs.back().name = "copy";
  CHECK_THROWS_AS(mean_over_seeds(runs), UsageError);
  CHECK_THROWS_WITH(mean_over_seeds(runs),
                    "runs 'post-1' and 'copy' have the same configuration and the same run.seed = 1: counted twice, a "
                    "mean would look surer than it is");
}

TEST_CASE("a mean is called by what the names of its runs share") {
  CHECK(mean_name({"placement=post,seed=1", "placement=post,seed=2"}) == "placement=post");
  CHECK(mean_name({"seed=1,placement=post", "seed=2,placement=post"}) == "placement=post");
  CHECK(mean_name({"post-1", "post-12", "post-13"}) == "post");
  CHECK(mean_name({"run1", "run10"}) == "run");
  CHECK(mean_name({"seed=1", "seed=2"}) == "seed");
  CHECK(mean_name({"1", "2"}) == "1");
  CHECK(mean_name({"24-layers a", "24-layers b"}) == "24-layers");
  std::vector<Run> two;
  for (const char* norm : {"a", "b"}) {
    for (const char* seed : {"1", "2"})
      two.push_back(run_of(str(norm, "-", seed), "step,loss\n1,2\n", {{"run.seed", seed}, {"model.norm", norm}}));
  }
  for (Run& run : two) run.name = run.name.substr(1);
  CHECK(names_of(mean_over_seeds(two)) == std::vector<std::string>{"-1 (1)", "-1 (2)"});
}
