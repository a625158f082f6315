#include "report/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>

#include "../process.h"
#include "core/text.h"
#include "normlab/error.h"
#include "report/compare.h"
#include "report/phase_map.h"

using namespace normlab;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Two layers, probed at step 5 and 10; the columns in an order of their own.
const std::string kRows =
    "layer,sublayer,step,stream_rms,grad_in,attention_entropy\n"
    "0,attention,5,1,10,0.9\n0,ffn,5,2,20,\n1,attention,5,3,30,0.8\n1,ffn,5,4,40,\n"
    "0,attention,10,1.5,11,0.7\n0,ffn,10,2.5,21,\n1,attention,10,3.5,nan,0.6\n1,ffn,10,4.5,41,\n";

LayerProfile profile(const std::string& name, const std::string& rows = kRows) {
  const ScratchDirectory here;
  return load_layers(here.write("layers.csv", rows), name);
}

// What an IoError says, from the name of the file on.
template <class Action>
std::string message_of(const Action& action) {
  try {
    action();
  } catch (const IoError& error) {
    const std::string text = error.what();
    return text.substr(std::min(text.find("layers.csv"), text.size()));
  }
  return "no error";
}

std::string error_of(const std::string& rows) {
  return message_of([&] { profile("a", rows); });
}

using Values = std::vector<double>;

}  // namespace

TEST_CASE("one run: a line per probed step over half layers, branches apart") {
  const LayerTable stream = layer_table({profile("a")}, "stream_rms");
  CHECK(stream.names == std::vector<std::string>{"step 5", "step 10"});
  const Chart chart = layers_chart(stream);
  REQUIRE(chart.series.size() == 2);
  CHECK(chart.series[0].x == Values{0, 0.5, 1, 1.5});
  CHECK(chart.series[0].y == Values{1, 2, 3, 4});
  CHECK(chart.series[1].y == Values{1.5, 2.5, 3.5, 4.5});
  CHECK(chart.log_y);

  const Chart branch = layers_chart(layer_table({profile("a")}, "grad_in"));
  REQUIRE(branch.series.size() == 4);
  CHECK(branch.series[0].name == "step 5, attention");
  CHECK(branch.series[0].x == Values{0, 1});
  CHECK(branch.series[0].y == Values{10, 30});
  CHECK(branch.series[1].name == "step 5, feed-forward");
  CHECK(branch.series[1].x == Values{0.5, 1.5});
  CHECK(branch.series[1].y == Values{20, 40});
  CHECK(std::isnan(branch.series[2].y[1]));  // a gap, not left out
  // One colour per step, dashes for the second sub-layer.
  CHECK(series_class(*branch.series[2].style) == "c1 d0");
  CHECK(series_class(*branch.series[3].style) == "c1 d1");
  CHECK(branch.series[3].group == std::size_t{1});
}

TEST_CASE("a quantity that only attention has is one line, and not logarithmic") {
  const Chart chart = layers_chart(layer_table({profile("a")}, "attention_entropy"));
  REQUIRE(chart.series.size() == 2);
  CHECK(chart.series[1].name == "step 10");
  CHECK(chart.series[1].x == Values{0, 1});
  CHECK(chart.series[1].y == Values{0.7, 0.6});
  CHECK_FALSE(chart.log_y);
  CHECK(layers_chart(layer_table({profile("a")}, "attention_entropy"), 760, true).log_y);
}

TEST_CASE("of many probed steps five are shown, with the first and the last") {
  std::string rows = "step,layer,sublayer,stream_rms\n";
  for (int step = 0; step <= 100; step += 10) rows += str(step, ",0,attention,1\n");
  CHECK(layer_table({profile("a", rows)}, "stream_rms").names ==
        std::vector<std::string>{"step 0", "step 30", "step 50", "step 80", "step 100"});
}

TEST_CASE("several runs: each at its last step, with layers that only one has") {
  const LayerProfile other = profile("b<", "step,layer,sublayer,grad_in\n7,0,attention,5\n7,2,ffn,6\n");
  const LayerTable table = layer_table({profile("a"), other}, "grad_in");
  CHECK(table.names == std::vector<std::string>{"a, step 10", "b<, step 7"});
  CHECK(layers_csv(table) ==
        "layer,sublayer,\"a, step 10\",\"b<, step 7\"\n"
        "0,attention,11,5\n0,ffn,21,\n1,attention,nan,\n1,ffn,41,\n2,ffn,,6\n");
  CHECK(layers_text(table).find("    0  attention          11           5\n") != std::string::npos);
  CHECK(layer_table({profile("a"), profile("c")}, "grad_in").names == std::vector<std::string>{"a", "c"});
  const std::string svg = chart_svg(layers_chart(table));
  CHECK(svg.find("b&lt;, step 7") != std::string::npos);
  CHECK(svg.find("b<") == std::string::npos);
}

TEST_CASE("a layers.csv that is none is refused with its place") {
  CHECK(error_of("step,layer\n1,0\n") == "layers.csv: no column 'sublayer'; its columns are step, layer");
  CHECK(error_of("layer,sublayer\n0,ffn\n").find("no column 'step'") != std::string::npos);
  CHECK(error_of("step,layer,sublayer\n,0,ffn\n") == "layers.csv:2: row 1: column 'step': expected a number");
  for (const char* layer : {"-1", "0.5", "nan", ""}) {
    CHECK(error_of(str("step,layer,sublayer\n1,", layer, ",ffn\n")) ==
          "layers.csv:2: row 1: column 'layer': expected a whole number from 0");
  }
  CHECK(error_of("step,layer,sublayer\n1,0,fn\n") ==
        "layers.csv:2: row 1: column 'sublayer': 'fn': expected attention or ffn");
  CHECK(error_of("step,layer,sublayer\n1,0,ffn\n1,0,ffn\n") ==
        "layers.csv:3: row 2: this sub-layer of this step is there twice");
  const ScratchDirectory here;
  CHECK(message_of([&] { load_layers(here.path(), "a"); }) ==
        "layers.csv: runs with [probe] every and `normlab probe` write it");
  const auto no_table = [](const LayerProfile& p, const std::string& column) {
    return message_of([&] { layer_table({p}, column); });
  };
  CHECK(no_table(profile("a"), "grad_inn") ==
        "layers.csv: no quantity 'grad_inn' (did you mean 'grad_in'?); it has stream_rms, grad_in, attention_entropy");
  CHECK(no_table(profile("a"), "step").find("layers.csv: no quantity 'step'") == 0);
  CHECK(no_table(profile("a", "step,layer,sublayer,x\n"), "x") == "layers.csv: no rows: nothing was probed yet");
}

namespace {

std::size_t count(const std::string& text, const std::string& piece) {
  std::size_t n = 0;
  for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++n;
  return n;
}

// `runs` runs whose final loss falls with their number; the last is not finite.
std::vector<Run> many_runs(const ScratchDirectory& here, int runs) {
  std::vector<std::filesystem::path> paths;
  for (int i = 0; i < runs; ++i) {
    const std::string name = str("r", i);
    std::filesystem::create_directories(here / name);
    here.write(name + "/metrics.csv", str("step,loss\n1,9\n2,", i + 1 == runs ? kNan : 5 - 0.01 * i, "\n"));
    here.write(name + "/config.toml", str(i));
    here.write(name + "/layers.csv", kRows);
    paths.push_back(here / name);
  }
  return load_runs(paths, [](const std::filesystem::path& path) {
    return FlatConfig{{"model.layers", read_file(path)}, {"train.lr", "1"}};
  });
}

}  // namespace

TEST_CASE("a few runs stand for many, from the best to the worst") {
  const ScratchDirectory here;
  const std::vector<Run> runs = many_runs(here, 31);
  std::vector<std::string> names;
  for (const Run& run : spread_of(runs, "loss", 4)) names.push_back(run.name);
  // Of 31 in the order r29, r28, .. r0, r30 those at 0, 10, 20, 30.
  CHECK(names == std::vector<std::string>{"r29", "r19", "r9", "r30"});
  CHECK(spread_of(runs, "loss", 31)[0].name == "r0");
}

TEST_CASE("the page: charts by layer, and with many runs a map on top, few curves, folded tables") {
  const ScratchDirectory here;
  const std::vector<Run> runs = many_runs(here, 31);
  const std::string few = compare_html({runs[0], runs[1]}, "loss");
  CHECK(count(few, "<h2>By layer</h2>") == 1);
  CHECK(count(few, "aria-label=\"stream_rms\"") == 1);
  CHECK(count(few, "aria-label=\"grad_in\"") == 1);
  CHECK(count(few, "aria-label=\"attention_entropy\"") == 1);
  CHECK(few.find("<details><summary>Table") == std::string::npos);
  CHECK(few.find("class=\"cell\"") == std::string::npos);

  const PhaseMap map = phase_map(runs, "loss", "model.layers");
  const std::string page = compare_html(runs, "loss", 1, &map);
  CHECK(page == compare_html(runs, "loss", 1, &map));
  CHECK(page.find("class=\"cell\"") < page.find("<details><summary>Table of the 31 runs</summary>"));
  CHECK(count(page, "class=\"cell\"") == 2 * 31);     // for a desk and for a phone
  CHECK(count(page, "<title>r29</title>") == 4 + 2);  // the best has a curve in all four charts and two by layer
  CHECK(count(page, "<title>r28</title>") == 0);      // its neighbour has none
  CHECK(count(page, "14 of the 31 runs") == 1);
  CHECK(count(page, "Of 31 runs with probes these 7") == 1);
  CHECK(count(page, "<li class=\"key\"") == 7);
  CHECK(page.find("src=") == std::string::npos);
  CHECK(page.find("href=") == std::string::npos);
}
