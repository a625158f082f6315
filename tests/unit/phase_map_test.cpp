#include "report/phase_map.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "../process.h"
#include "core/text.h"
#include "normlab/error.h"
#include "report/chart_text.h"
#include "report/colour_scale.h"

using namespace normlab;

namespace {

std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) found.push_back((*at)[1]);
  return found;
}

// config.toml of these tests: one `key = value` per line.
FlatConfig read_flat(const std::filesystem::path& path) {
  FlatConfig config;
  for (const std::string& line : split(read_file(path), '\n')) {
    const auto at = line.find(" = ");
    if (at != std::string::npos) config[line.substr(0, at)] = line.substr(at + 3);
  }
  return config;
}

// Run directories written by hand.
struct Sweep {
  ScratchDirectory folder;
  std::vector<std::filesystem::path> paths;
  void add(const std::string& name, const std::string& config, const std::string& losses, const std::string& verdict) {
    std::string csv = "step,loss,val_loss\n";
    int step = 0;
    for (const std::string& loss : split(losses, ' ')) csv += str(++step, ",", loss, ",\n");
    std::filesystem::create_directories(folder / name);
    folder.write(name + "/metrics.csv", csv);
    folder.write(name + "/config.toml", str("run.name = ", name, "\n", config));
    folder.write(name + "/summary.json", str("{\"verdict\": \"", verdict, "\", \"reason\": \"\"}"));
    paths.push_back(folder / name);
  }
  std::vector<Run> runs() const { return load_runs(paths, read_flat); }
  std::string error(const std::string& keys) const {
    try {
      phase_map(runs(), "loss", keys);
    } catch (const UsageError& e) {
      return e.what();
    }
    return "no error";
  }
};

std::string at(int layers, int warmup, int seed = 1) {
  return str("model.layers = ", layers, "\ntrain.warmup = ", warmup, "\nrun.seed = ", seed, "\nmodel.norm = rmsnorm\n");
}

// layers 2, 10 by warmup 0, 100 without the cell 2, 100; not in the order of the axes.
struct SmallSweep : Sweep {
  SmallSweep() {
    add("a", at(10, 100), "4 2.5 2.5", "stable");  // mean of all three, as there are no 20: 3
    add("b", at(2, 0), "1 1 1", "stable");
    add("c", at(10, 0), "4 nan", "diverged");
  }
};

}  // namespace

TEST_CASE("a value far above the others lies outside the scale, and they keep their decimals") {
  Sweep sweep;
  for (int i = 0; i < 8; ++i) sweep.add(str("r", i), at(i + 1, 0), str(2 + 0.1 * i), "stable");  // 2.0 to 2.7
  sweep.add("far", at(9, 0), "17325.4", "stalled");
  const PhaseMap map = phase_map(sweep.runs(), "loss", "model.layers");
  CHECK_FALSE(map.at(8, 0).on_scale());
  CHECK(map.at(7, 0).on_scale());
  CHECK(map_text(map, map.at(8, 0)) == "17325 stalled");
  CHECK(map_text(map, map.at(0, 0)) == "2.000 stable");
  // Quartiles 2.2 and 2.6: 6.6 is the border.
  CHECK(std::find(map.notes.begin(), map.notes.end(),
                  "1 value lies far above the others, 2.60 and less for three in four, and outside the scale.") !=
        map.notes.end());
  sweep.add("near", at(10, 0), "6", "stalled");
  CHECK(phase_map(sweep.runs(), "loss", "model.layers").at(9, 0).on_scale());
}

TEST_CASE("the validation loss of a map is that at the end, not the last one that a row has") {
  SmallSweep sweep;
  const auto write = [&](const char* name, const char* rows, const char* summary) {
    sweep.folder.write(str(name, "/metrics.csv"), str("step,loss,val_loss\n", rows));
    sweep.folder.write(str(name, "/summary.json"), str("{\"verdict\": \"stable\", \"reason\": \"\"", summary, "}"));
  };
  write("a", "1,4,\n2,3,3.5\n3,2,\n", ", \"validation_loss\": 2.25");
  write("b", "1,4,\n2,3,3.5\n3,2,\n", "");
  const PhaseMap map = phase_map(sweep.runs(), "val_loss", "model.layers,train.warmup");
  CHECK(map.at(1, 1).value == 2.25);
  CHECK(map.at(0, 0).value == 3.5);
}

TEST_CASE("cells of a phase map have the final loss and the verdict of their run") {
  const PhaseMap map = phase_map(SmallSweep().runs(), "loss", "model.layers,train.warmup");
  CHECK(map.xs == std::vector<std::string>{"2", "10"});  // as numbers, not as text, nor as they came
  CHECK(map.ys == std::vector<std::string>{"0", "100"});
  CHECK(map.at(1, 1).value == 3.0);
  CHECK(map.at(0, 0).value == 1.0);
  CHECK(map.at(1, 1).runs == std::vector<std::string>{"a"});
  CHECK(map.at(1, 0).verdict == "diverged");
  CHECK_FALSE(map.at(1, 0).value.has_value());
  CHECK_FALSE(map.at(1, 0).on_scale());
  CHECK(map.at(0, 1).runs.empty());
  CHECK(map_table(map) ==
        "final loss, verdict\n"
        "train.warmup \\ model.layers  2            10\n"
        "100                          -            3.00 stable\n"  // numbers grow upwards
        "0                            1.00 stable  diverged\n"
        "note: No run for 1 of 4 cells: model.layers = 2, train.warmup = 100.\n");
  CHECK(map_csv(map) ==
        "model.layers,train.warmup,loss,verdict,agree,n,runs\n"
        "2,0,1,stable,1,1,b\n"
        "10,0,,diverged,1,1,c\n"
        "2,100,,,0,0,\n"
        "10,100,3,stable,1,1,a\n");
}

TEST_CASE("a map over one key is one row") {
  Sweep s;
  s.add("a", at(4, 0), "2", "stalled");
  s.add("b", at(2, 0), "1", "spiked");
  const PhaseMap map = phase_map(s.runs(), "loss", "model.layers");
  CHECK(map_csv(map) ==
        "model.layers,loss,verdict,agree,n,runs\n"
        "2,1,spiked,1,1,b\n"
        "4,2,stalled,1,1,a\n");
  CHECK(map_table(map) ==
        "final loss, verdict\nmodel.layers  2            4\nloss          1.00 spiked  2.00 stalled\n");
}

TEST_CASE("values that are no numbers come after those that are, in the order of their runs") {
  Sweep s;
  for (const char* value : {"auto", "2", "pre", "1e-3", "-1"})
    s.add(value, str("model.x = ", value, "\nmodel.norm = rmsnorm\n"), "1", "stable");
  CHECK(phase_map(s.runs(), "loss", "model.x").xs == std::vector<std::string>{"-1", "1e-3", "2", "auto", "pre"});
  // As rows, these read downwards.
  Sweep words;
  words.add("a", "m.p = post\nm.n = x\n", "1", "stable");
  words.add("b", "m.p = deepnorm\nm.n = y\n", "1", "stable");
  CHECK(phase_map(words.runs(), "loss", "m.n,m.p").rows() == std::vector<std::size_t>{0, 1});
}

TEST_CASE("seeds share a cell: the mean of those that did not diverge, the worst verdict, how many") {
  Sweep s;
  s.add("a1", at(2, 0, 1), "1", "stable");
  s.add("a2", at(2, 0, 2), "2", "stalled");
  s.add("a3", at(2, 0, 3), "6", "stable");
  s.add("b1", at(4, 0, 1), "3", "stable");
  s.add("b2", at(4, 0, 2), "nan", "diverged");
  s.add("b3", at(4, 0, 3), "4", "spiked");
  const PhaseMap map = phase_map(s.runs(), "loss", "model.layers");
  CHECK(map.at(0, 0).value == 3.0);
  CHECK(map_text(map, map.at(0, 0)) == "3.00 stalled 1/3");
  CHECK(map.at(1, 0).value == 3.5);
  CHECK_FALSE(map.at(1, 0).on_scale());  // one of them diverged
  CHECK(map_text(map, map.at(1, 0)) == "3.50 diverged 1/3");
  CHECK(map_csv(map) ==
        "model.layers,loss,verdict,agree,n,runs\n2,3,stalled,1,3,a1 a2 a3\n4,3.5,diverged,1,3,b1 b2 b3\n");
  REQUIRE(map.notes.size() == 1);
  CHECK(map.notes[0].find("differ in run.seed only") != std::string::npos);
  CHECK(matches(map_svg(map), "class=\"count [a-z]+\">([^<]*)<") == std::vector<std::string>{"1/3", "1/3"});

  s.add("a3-again", at(2, 0, 3), "6", "stable");
  CHECK(s.error("model.layers").find("the same run.seed = 3") != std::string::npos);
}

TEST_CASE("verdicts from good to bad, what is not known before what went wrong") {
  const std::vector<std::string> order = {"stable", "-", "interrupted", "spiked", "stalled", "diverged"};
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    for (const bool swapped : {false, true}) {
      Sweep s;
      s.add("a", at(2, 0, 1), "1", order[swapped ? i + 1 : i]);
      s.add("b", at(2, 0, 2), "1", order[swapped ? i : i + 1]);
      s.add("c", at(4, 0, 1), "1", "stable");
      CHECK(phase_map(s.runs(), "loss", "model.layers").at(0, 0).verdict == order[i + 1]);
    }
  }
}

TEST_CASE("what is no map is refused with the keys that could be one") {
  SmallSweep s;
  const std::string rest = "; the runs differ in model.layers, train.warmup";
  CHECK(s.error("model.layer,train.warmup") ==
        "--map: no run has the key 'model.layer' (did you mean 'model.layers'?)" + rest);
  CHECK(s.error("model.layers,model.norm") == "--map: model.norm is 'rmsnorm' in all runs" + rest);
  CHECK(s.error("run.seed,model.layers") == "--map: run.seed cannot be an axis: a cell is the mean over seeds" + rest);
  for (const char* keys : {"", ",", "a,", "model.layers,model.layers", "a,b,c"})
    CHECK(s.error(keys) == str("--map: '", keys, "': expected one key or two different ones, X_KEY,Y_KEY"));
  CHECK(s.error("model.layers") ==
        "--map: runs 'a' and 'c' fall into one cell but differ in train.warmup: a mean over them would hide that");
  s.folder.write("plain.csv", "step,loss\n1,2\n");
  s.paths.push_back(s.folder / "plain.csv");
  CHECK(s.error("model.layers,train.warmup") == "--map: run 'plain' has no config.toml, so it has no place on a map");
}

TEST_CASE("keys that differ besides the axes are named with the axis they go with") {
  Sweep s;
  s.add("a", "m.norm = x\nnorm.eps = 1\ntrain.lr = 1\nm.depth = 1\n", "1", "stable");
  s.add("b", "m.norm = y\nnorm.eps = 2\ntrain.lr = 2\nm.depth = 1\n", "1", "stable");
  s.add("c", "m.norm = x\nnorm.eps = 1\ntrain.lr = 3\nm.depth = 2\n", "1", "stable");
  s.add("d", "m.norm = y\nnorm.eps = 2\ntrain.lr = 4\nm.depth = 2\n", "1", "stable");
  CHECK(phase_map(s.runs(), "loss", "m.norm,m.depth").notes ==
        std::vector<std::string>{"Besides the axes the runs differ in train.lr; norm.eps (with m.norm)."});
}

TEST_CASE("a metric that was not measured, or is not finite, has no colour") {
  Sweep s;
  s.add("a", at(2, 0), "1", "stable");
  s.add("b", at(4, 0), "inf", "-");
  const PhaseMap none = phase_map(s.runs(), "val_loss", "model.layers");
  CHECK_FALSE(none.at(0, 0).value.has_value());
  CHECK(none.notes == std::vector<std::string>{"No val_loss measured: model.layers = 2; model.layers = 4."});
  const PhaseMap map = phase_map(s.runs(), "loss", "model.layers");
  CHECK(map_text(map, map.at(1, 0)) == "inf ?");
  CHECK_FALSE(map.at(1, 0).on_scale());
  CHECK_THROWS_AS(phase_map(s.runs(), "lss", "model.layers"), IoError);
}

TEST_CASE("numbers of a map have the decimals its range needs") {
  const auto shown = [](double low, double high) {
    PhaseMap map;
    for (const double value : {low, high}) map.cells.push_back({{"r"}, 1, "stable", value});
    return map_number(map, low);
  };
  CHECK(shown(1.23456, 3.5) == "1.23");
  CHECK(shown(1.23456, 1.26) == "1.2346");
  CHECK(shown(12.3456, 60) == "12.3");
  CHECK(shown(1.23456, 1.23456) == "1.23");
  CHECK(shown(123456, 200000) == "1.2346×10⁵");
}

TEST_CASE("the map's image: colours of the scale, signs, hatches, escaped and the same each time") {
  SmallSweep s;
  s.add("d<&\"'", at(4, 0) + "model.path = <&\"'\n", "2", "spiked");
  const PhaseMap map = phase_map(s.runs(), "loss", "model.layers,train.warmup");
  const std::string svg = map_svg(map);
  CHECK(svg == map_svg(phase_map(s.runs(), "loss", "model.layers,train.warmup")));
  // Lowest and highest value have the ends of the scale, in the order of drawing: upper row first.
  const std::vector<std::string> cells = matches(svg, "<g class=\"cell\">((?:.|\n)*?)</g>");
  REQUIRE(cells.size() == 6);
  const auto fill = [&](std::size_t cell) { return matches(cells[cell], "fill=\"(#[0-9a-f]{6})\"").at(0); };
  CHECK(fill(2) == scale_colour(1).hex());                     // layers 10, warmup 100: 3
  CHECK(fill(3) == scale_colour(0).hex());                     // layers 2, warmup 0: 1
  CHECK(fill(4) == scale_colour(0.5).hex());                   // layers 4, warmup 0: 2
  CHECK(cells[5].find("class=\"off\"") != std::string::npos);  // diverged
  CHECK(cells[0].find("class=\"hatch\"") != std::string::npos);
  CHECK(cells[3].find(">1.00</text>") != std::string::npos);
  CHECK(cells[4].find("stroke-dasharray=\"4 2.5\"") != std::string::npos);  // the border of a spiked run
  CHECK(cells[3].find("stroke-dasharray") == std::string::npos);
  CHECK(cells[4].find("model.layers = 4, train.warmup = 0: loss 2.0000, spiked; d&lt;&amp;&quot;'") !=
        std::string::npos);
  CHECK(svg.find("d<&") == std::string::npos);
  for (const char* key : {">stable<", ">spiked<", ">diverged<", ">outside the scale<", ">no run<"})
    CHECK(svg.find(key) != std::string::npos);
  CHECK(svg.find(">stalled<") == std::string::npos);
  CHECK(svg.find("http://www.w3.org/2000/svg") == svg.rfind("http"));  // nothing from a network
  // By the logarithm, 2 lies above the middle of 1 and 3: ln 2 / ln 3.
  CHECK(map_svg(map, {true}).find(scale_colour(std::log(2) / std::log(3)).hex()) != std::string::npos);
}

TEST_CASE("a wide map keeps its numbers readable, a narrow one its text inside") {
  PhaseMap map;
  map.metric = "loss";
  map.x_key = "model.layers";
  map.y_key = "model.norm";
  map.notes = {"a note that is too long for one line of a narrow image and so has to be broken into several lines"};
  for (int x = 0; x < 40; ++x) map.xs.push_back(str("a long value number ", x));
  map.ys = {"one"};
  for (int x = 0; x < 40; ++x) map.cells.push_back({{"r"}, 1, "stable", x + 0.25});
  for (const int width : {360, 760}) {
    const std::string svg = map_svg(map, {false, width});
    CHECK(parse_double(matches(svg, " width=\"([0-9.]+)\" height").at(0)).value() > 40 * 40);  // at least 40 a cell
    CHECK(matches(svg, "(rotate\\(-45)").size() == 40);
    const std::regex quiet("<text x=\"([0-9.]+)\" y=\"[0-9.]+\" class=\"quiet\">([^<]*)<");
    for (std::sregex_iterator at(svg.begin(), svg.end(), quiet), end; at != end; ++at)
      CHECK(parse_double((*at)[1].str()).value() + text_width((*at)[2].str(), 12) <= width);
  }
}

TEST_CASE("the colour scale grows lighter evenly and text on it has contrast") {
  // CIE 1976 lightness from relative luminance; 100 is white.
  const auto lightness = [](Colour c) {
    const double y = luminance(c);
    return y > 216.0 / 24389 ? 116 * std::cbrt(y) - 16 : y * 24389 / 27;
  };
  const double first = lightness(scale_colour(0)), last = lightness(scale_colour(1));
  CHECK(first < 20);
  CHECK(last > 90);
  for (int i = 0; i < 100; ++i) {
    const double here = lightness(scale_colour(i / 100.0)), next = lightness(scale_colour((i + 1) / 100.0));
    CHECK(next > here);
    CHECK(std::abs(here - (first + (last - first) * i / 100)) < 4);
    const double light = luminance(scale_colour(i / 100.0));
    const double contrast = takes_white_text(scale_colour(i / 100.0)) ? 1.05 / (light + 0.05) : (light + 0.05) / 0.05;
    CHECK(contrast >= 4.5);
  }
  CHECK(Colour{0, 114, 178}.hex() == "#0072b2");
  CHECK(luminance({255, 255, 255}) == Approx(1));
  CHECK(luminance({0, 0, 0}) == 0);
  CHECK(luminance({128, 128, 128}) == Approx(0.215861).margin(1e-6));  // ((128/255 + 0.055) / 1.055)^2.4
}
