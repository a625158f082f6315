#include "report/compare.h"

#include <unistd.h>

#include <cmath>
#include <limits>

#include "core/files.h"
#include "core/text.h"
#include "normlab/error.h"
#include "test.h"

using namespace normlab;

namespace {

namespace fs = std::filesystem;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// A folder of its own that goes with the test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / str("normlab-compare-", getpid())) { fs::create_directories(path_); }
  ~Folder() { fs::remove_all(path_); }
  fs::path add(const std::string& name, const std::string& content) const {
    fs::create_directories((path_ / name).parent_path());
    write_file_atomically(path_ / name, content);
    return path_ / name;
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

Run run_of(const std::string& name, const std::string& csv, FlatConfig config = {}) {
  Run run;
  run.name = name;
  run.metrics = parse_csv(csv, name + ".csv");
  for (const auto& step : run.metrics.numbers("step")) run.steps.push_back(step.value());
  run.config = std::move(config);
  return run;
}

// step,loss with loss = first, first + by, ... at every `every` steps up to `end`.
std::string ramp(int every, int end, double first = 1, double by = 1) {
  std::string csv = "step,loss\n";
  for (int step = every, i = 0; step <= end; step += every, ++i) csv += csv_row(step, first + by * i);
  return csv;
}

std::vector<std::string> without_blanks(const std::string& table) {
  std::vector<std::string> lines;
  for (const std::string& line : split(table, '\n')) {
    std::vector<std::string> cells;
    for (const std::string& cell : split(line, ' ')) {
      if (!cell.empty()) cells.push_back(cell);
    }
    lines.push_back(join(cells, " "));
  }
  return lines;
}

FlatConfig read_flat(const fs::path& path) { return {{"run.name", "x"}, {"config", read_file(path)}}; }

}  // namespace

TEST_CASE("a run directory is loaded with its summary and its config") {
  const Folder folder;
  folder.add("post-24/metrics.csv", "step,tokens,lr,loss,val_loss\n1,64,0.1,4.5,\n2,128,0.1,4,3.75\n");
  folder.add("post-24/config.toml", "text");
  folder.add("post-24/summary.json",
             R"({"verdict": "stalled", "reason": "why", "validation_loss": 3.5, "context_free_entropy": 3.25,
                 "entropy_rate": null, "vocabulary": 65, "unknown": [1]})");
  const Run run = load_run(folder / "post-24", read_flat);
  CHECK(run.name == "post-24");
  CHECK(run.verdict == "stalled");
  CHECK(run.reason == "why");
  CHECK(run.validation_loss == 3.5);
  CHECK(run.context_free_entropy == 3.25);
  CHECK_FALSE(run.entropy_rate.has_value());
  CHECK(run.vocabulary == 65.0);
  CHECK(run.steps == std::vector<double>{1, 2});
  CHECK(run.config.at("config") == "text");
}

TEST_CASE("a validation loss that the summary calls null is not replaced by an earlier row") {
  const Folder folder;
  folder.add("a/metrics.csv", "step,loss,val_loss\n1,2,1.5\n2,nan,\n");
  CHECK(load_run(folder / "a").validation_loss == 1.5);
  folder.add("a/summary.json", R"({"validation_loss": null})");
  CHECK_FALSE(load_run(folder / "a").validation_loss.has_value());
}

TEST_CASE("any CSV with step and loss is a run, whatever the order of its columns") {
  const Folder folder;
  const Run run = load_run(folder.add("torch.csv", "loss,accuracy,step\r\n2.5,0.1,10\r\n2.25,0.2,20\r\n"));
  CHECK(run.name == "torch");
  CHECK(run.verdict == "-");
  CHECK(run_curve(run, "accuracy").steps == std::vector<double>{10, 20});
  CHECK(run_curve(run, "accuracy").values == std::vector<double>{0.1, 0.2});
}

TEST_CASE("runs of the same name are told apart by as much of the path as that takes") {
  const Folder folder;
  for (const char* name : {"x/a/metrics.csv", "y/a/metrics.csv", "y/b/metrics.csv"})
    folder.add(name, "step,loss\n1,2\n");
  const auto runs = load_runs({folder / "x/a", folder / "y/a/", folder / "y/b/metrics.csv", folder / "x/../y/b"});
  CHECK(runs[0].name == "x/a");
  CHECK(runs[1].name == "y/a");
  CHECK(runs[2].name == "b (1)");
  CHECK(runs[3].name == "b (2)");
}

TEST_CASE("what cannot be compared is refused with its place") {
  const Folder folder;
  const auto error_of = [&](const fs::path& path) -> std::string {
    try {
      load_run(path);
    } catch (const IoError& error) {
      const std::string text = error.what(), start = (folder / "").string();
      const auto at = text.find(start);
      return at == std::string::npos ? text : text.substr(at + start.size());
    }
    return "no error";
  };
  CHECK(error_of(folder.add("a.csv", "step,lose\n1,2\n")) ==
        "a.csv: no column 'loss' (did you mean 'lose'?); its columns are step, lose");
  CHECK(error_of(folder.add("b.csv", "step,loss\n1,2\n,3\n")) ==
        "b.csv:3: row 2, column 'step': expected a number in every row");
  CHECK(error_of(folder.add("c.csv", "step,loss\n100000,2\n100000,3\n")) ==
        "c.csv:3: row 2, column 'step': 100000 after 100000: steps must grow from row to row");
  folder.add("sweep/one/metrics.csv", "step,loss\n");
  CHECK(error_of(folder / "sweep").find("sweep: holds no metrics.csv itself but run directories, such as") == 0);
  fs::create_directories(folder / "none");
  CHECK(error_of(folder / "none") == "none: no run directory, it holds no metrics.csv");
  CHECK_THROWS_WITH(run_curve(run_of("r", "step,loss\n1,2\n"), "grad_norm"),
                    "run 'r' has no column 'grad_norm'; r.csv has step, loss");
}

TEST_CASE("first is the first value, best the smallest finite one, final the mean of the last twenty") {
  Curve curve;
  for (int i = 1; i <= 30; ++i) curve.steps.push_back(i), curve.values.push_back(40 - i);  // 39 ... 10
  CHECK(curve_facts(curve).first == 39);
  CHECK(curve_facts(curve).best == 10);
  CHECK(curve_facts(curve).last == 19.5);  // mean of 29 ... 10
  const CurveFacts few = curve_facts({{1, 2}, {3, 4}});
  CHECK(few.last == 3.5);
}

TEST_CASE("nan never wins the best loss and never hides in the final one") {
  const CurveFacts facts = curve_facts({{1, 2, 3, 4}, {kNan, 3, -kInf, kNan}});
  CHECK(std::isnan(facts.first));
  CHECK(facts.best == 3);
  CHECK(std::isnan(facts.last));
  CHECK(std::isnan(curve_facts({{1, 2}, {kNan, kInf}}).best));
  CHECK(std::isnan(curve_facts({}).last));
}

TEST_CASE("smoothing is a mean over the last steps, counted in steps and not in rows") {
  CHECK(smoothed({{1, 2, 3, 4}, {4, 2, 6, 1}}, 1) == std::vector<double>{4, 2, 6, 1});
  CHECK(smoothed({{1, 2, 3, 4}, {4, 2, 6, 1}}, 2) == std::vector<double>{4, 3, 4, 3.5});
  CHECK(smoothed({{1, 2, 3, 4}, {4, 2, 6, 1}}, 100) == std::vector<double>{4, 3, 4, 3.25});
  CHECK(smoothed({{10, 20, 30}, {4, 2, 6}}, 10) == std::vector<double>{4, 2, 6});
  CHECK(smoothed({{10, 20, 30}, {4, 2, 6}}, 11) == std::vector<double>{4, 3, 4});
  const auto gap = smoothed({{1, 2, 3, 4}, {4, kNan, 6, 8}}, 3);
  CHECK(gap[0] == 4);
  CHECK(std::isnan(gap[1]));
  CHECK(gap[2] == 5);
  CHECK(gap[3] == 7);
}

TEST_CASE("a spike leaves nothing behind once it has left the window of the mean") {
  CHECK(smoothed({{1, 2, 3, 4}, {1, 1e30, 2, 4}}, 2)[3] == 3);
}

TEST_CASE("the config keys that differ are found among the runs that have a config") {
  const std::vector<Run> runs = {
      run_of("a", "step,loss\n",
             {{"run.name", "a"}, {"model.norm", "rmsnorm"}, {"train.lr", "0.001"}, {"norm.p", "1"}}),
      run_of("b", "step,loss\n", {{"run.name", "b"}, {"model.norm", "layernorm"}, {"train.lr", "0.001"}}),
      run_of("c", "step,loss\n")};
  CHECK(compare_configs(runs).different == std::vector<std::string>{"model.norm", "norm.p"});
  CHECK(compare_configs(runs).same == std::vector<std::string>{"train.lr"});
}

TEST_CASE("the table shows verdicts, losses and differing keys, aligned") {
  std::vector<Run> runs = {
      run_of("post", "step,loss,val_loss\n1,4.5,\n2,nan,\n",
             {{"model.placement", "post"}, {"data.path", "a/very/long/path/to/a/file/of/text"}}),
      run_of("pre-norm", "step,loss,val_loss\n1,4.5,\n2,123456,2\n", {{"model.placement", "pre"}, {"data.path", "b"}})};
  runs[0].verdict = "diverged";
  runs[1].verdict = "stable";
  runs[1].validation_loss = 2;
  CHECK(compare_table(runs, "loss") ==
        "run       verdict   steps  first loss  best loss  final loss  val loss  data.path                     "
        "model.placement\n"
        "post      diverged      2      4.5000     4.5000         nan         -  a/very/long/path/to/a/file/…  post\n"
        "pre-norm  stable        2      4.5000     4.5000  61730.2500    2.0000  b                             pre\n"
        "note: post: loss non-finite from step 2.\n");
}

TEST_CASE("runs of different length are compared at their common steps, and the table says so") {
  // A: 50, 100, ... 500 with values 1 ... 10; B: 20, 40, ... 1000 with 1 ... 50. Common: 100, 200, ... 500.
  const std::vector<Run> runs = {run_of("A", ramp(50, 500)), run_of("B", ramp(20, 1000))};
  const auto lines = without_blanks(compare_table(runs, "loss"));
  CHECK(lines[0] == "run verdict steps first loss best loss final loss val loss loss at 500");
  CHECK(lines[1] == "A - 500 1.0000 1.0000 5.5000 - 6.0000");     // (2 + 4 + 6 + 8 + 10) / 5
  CHECK(lines[2] == "B - 1000 1.0000 1.0000 40.5000 - 15.0000");  // final: 31 ... 50; (5 + 10 + 15 + 20 + 25) / 5
  CHECK(lines[3] == "note: The last steps with loss differ: A 500, B 1000.");
  CHECK(
      lines[4] ==
      "note: loss at 500 is the mean over the last 5 of the 5 steps that all runs have; final values are those at each "
      "run's own end.");
}

TEST_CASE("runs that end together but log at other steps, or share none, are noted") {
  CHECK(compare_notes({run_of("A", ramp(50, 100)), run_of("B", ramp(20, 100))}, "loss") ==
        std::vector<std::string>{"The runs do not have the same steps; common to all: 1."});
  CHECK(compare_notes({run_of("A", "step,loss\n1,2\n"), run_of("B", "step,loss\n2,2\n")}, "loss") ==
        std::vector<std::string>{"The last steps with loss differ: A 1, B 2.",
                                 "No step has loss in all runs: final values are not taken at the same place."});
  CHECK(compare_notes({run_of("A", ramp(1, 30)), run_of("B", ramp(1, 30))}, "loss").empty());
}

TEST_CASE("another metric than loss gets a column of its own, and a run without it is named") {
  const Run with = run_of("A", "step,loss,grad_norm\n1,2,0.5\n2,1,1.5\n"), without = run_of("B", ramp(1, 2));
  CHECK(without_blanks(compare_table({with}, "grad_norm"))[1] == "A - 2 2.0000 1.0000 1.5000 - 1.0000");
  for (const auto& call : {+[](const std::vector<Run>& runs) { return compare_table(runs, "grad_norm"); },
                           +[](const std::vector<Run>& runs) { return compare_svg(runs, "grad_norm"); },
                           +[](const std::vector<Run>& runs) { return compare_csv(runs, "grad_norm"); },
                           +[](const std::vector<Run>& runs) { return compare_html(runs, "grad_norm"); }}) {
    CHECK_THROWS_WITH(call({with, without}), "run 'B' has no column 'grad_norm'; B.csv has step, loss");
  }
}

TEST_CASE("the chart has x from the step column, the raw curve behind the mean, and the divergence marked") {
  const std::vector<Run> runs = {run_of("A", "step,loss\n50,4\n100,2\n150,nan\n200,nan\n"),
                                 run_of("B", "step,loss\n20,1\n40,nan\n60,3\n")};
  const Chart chart = compare_chart(runs, "loss", {100, true, 500});
  CHECK(chart.title == "Training loss, mean over 100 steps");
  CHECK(chart.log_y);
  CHECK(chart.width == 500);
  CHECK(chart.series[0].x == std::vector<double>{50, 100, 150, 200});
  CHECK(chart.series[0].y[1] == 3);
  CHECK(chart.series[0].raw[1] == 2);
  REQUIRE(chart.series[0].mark.has_value());
  CHECK(chart.series[0].mark->x == 150);
  CHECK(chart.series[0].mark->text == "non-finite from step 150");
  CHECK(chart.series[1].name == "B: 1 of 3 values not finite");
  CHECK_FALSE(chart.series[1].mark.has_value());
  CHECK(compare_chart(runs, "loss").series[0].raw.empty());
}

TEST_CASE("an empty validation cell is no gap: the curve joins the steps that were evaluated") {
  const Chart chart = compare_chart({run_of("A", "step,loss,val_loss\n1,4,3\n2,4,\n3,4,2\n")}, "val_loss");
  CHECK(chart.title == "Validation loss");
  CHECK(chart.series[0].x == std::vector<double>{1, 3});
  CHECK(chart.series[0].y == std::vector<double>{3, 2});
}

TEST_CASE("reference lines are shared where the runs agree and named by their data where not") {
  std::vector<Run> runs = {run_of("A", ramp(1, 2), {{"data.source", "stories"}}),
                           run_of("B", ramp(1, 2), {{"data.source", "markov"}})};
  const auto labels = [&](std::string_view metric) {
    std::vector<std::string> found;
    for (const ChartLine& line : compare_chart(runs, metric).lines) found.push_back(line.label);
    return found;
  };
  runs[0].vocabulary = runs[1].vocabulary = 65;  // ln 65 = 4.174
  runs[0].context_free_entropy = 3.31;
  runs[1].context_free_entropy = 3.3101;
  runs[1].entropy_rate = 1.2;
  CHECK(labels("loss") == std::vector<std::string>{"ln V = 4.17", "context-free entropy 3.31", "entropy rate 1.20"});
  CHECK(compare_chart(runs, "loss").lines[0].value == Approx(4.174387));
  runs[1].context_free_entropy = 2.5;
  CHECK(labels("loss")[1] == "context-free entropy 3.31 (stories)");
  CHECK(labels("loss")[2] == "context-free entropy 2.50 (markov)");
  runs[1].config.clear();
  runs[0].config.clear();
  CHECK(labels("loss")[2] == "context-free entropy 2.50 (B)");
  CHECK(labels("step").empty());
}

TEST_CASE("the CSV has one row per step of any run and empty cells where a run has no value") {
  CHECK(compare_csv({run_of("A", "step,loss\n1,4\n100000,nan\n"), run_of("B, \"b\"", "step,loss\n2,0.1\n3,\n")},
                    "loss") == "step,A,\"B, \"\"b\"\"\"\n1,4,\n2,,0.1\n3,,\n100000,nan,\n");
}

TEST_CASE("the page holds table, charts, verdicts and configs, escaped, and asks for nothing outside itself") {
  std::vector<Run> runs = {run_of("<A>", ramp(1, 3), {{"model.norm", "rms&norm"}, {"train.lr", "0.5"}}),
                           run_of("B", ramp(1, 3), {{"model.norm", "none"}, {"train.lr", "0.5"}}),
                           run_of("C", ramp(1, 3))};
  runs[0].verdict = "spiked";
  runs[0].reason = "a spike > 2 at step <3>";
  const std::string page = compare_html(runs, "loss", 2);
  const auto count = [&](std::string_view piece) {
    int found = 0;
    for (auto at = page.find(piece); at != std::string::npos; at = page.find(piece, at + 1)) ++found;
    return found;
  };
  CHECK(count("<svg xmlns") == 4);  // linear and logarithmic, for a desk and for a phone
  CHECK(count("data-log=\"1\"") == 2);
  CHECK(count("a spike &gt; 2 at step &lt;3&gt;") == 1);
  CHECK(count("<td>rms&amp;norm</td>") == 1);
  CHECK(count("<td>train.lr</td><td class=\"text\">0.5</td>") == 1);
  CHECK(count("C: no configuration known.") == 1);
  CHECK(count("<A>") == 0);
  CHECK(count("http") == 4);  // the name of the SVG format, which no browser fetches
  CHECK(count("src=") == 0);
  CHECK(count("@import") == 0);
}

TEST_CASE("a run without rows can be shown") {
  const std::vector<Run> runs = {run_of("A", "step,loss\n")};
  CHECK(without_blanks(compare_table(runs, "loss"))[1] == "A - 0 nan nan nan -");
  CHECK(compare_csv(runs, "loss") == "step,A\n");
  CHECK(compare_html(runs, "loss").find("no finite values") != std::string::npos);
}
