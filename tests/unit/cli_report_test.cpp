// Comparisons, costs and threads from outside.
#include <algorithm>

#include "../process.h"
#include "../small_run.h"
#include "core/json.h"
#include "core/text.h"
#include "report/csv.h"

using namespace normlab;

namespace {

bool contains(const std::string& text, const std::string& piece) { return text.find(piece) != std::string::npos; }

// A small config, and what the tool says about it.
class Lab {
 public:
  explicit Lab(const std::string& more = "") : config(here.write("c.toml", kSmallRun + more)) {}
  ProcessResult operator()(const std::string& command, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {command, config, "--quiet", "--out", (here / "runs").string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_tool(words);
  }
  std::string run(const std::string& name) const { return (here / ("runs/" + name)).string(); }

  ScratchDirectory here;
  std::string config;
};

}  // namespace

TEST_CASE("compare --mean averages the seeds of a sweep, in table, CSV and chart") {
  const Lab lab("[sweep]\n\"model.placement\" = [\"post\", \"pre\"]\n\"run.seed\" = [1, 2, 3]\n");
  REQUIRE(lab("sweep").code == 0);
  std::vector<std::string> words = {"compare", "--mean",
                                    "--svg",   (lab.here / "m.svg").string(),
                                    "--csv",   (lab.here / "m.csv").string(),
                                    "--html",  (lab.here / "m.html").string()};
  std::vector<CsvTable> runs;
  for (const char* placement : {"post", "pre"}) {
    for (const char* seed : {"1", "2", "3"}) {
      words.push_back(lab.run(str("small/placement=", placement, ",seed=", seed)));
      runs.push_back(read_csv(words.back() + "/metrics.csv"));
    }
  }
  const ProcessResult r = run_tool(words);
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "\nplacement=post  "));
  CHECK(contains(r.out, "loss: n = 3 to step 20."));
  CHECK_FALSE(contains(r.out, "\nplacement=post,seed=1"));
  const CsvTable means = read_csv(lab.here / "m.csv");
  CHECK(means.columns == std::vector<std::string>{"step", "placement=post mean", "placement=post ci95",
                                                  "placement=post n", "placement=pre mean", "placement=pre ci95",
                                                  "placement=pre n"});
  for (std::size_t row = 0; row < 20; ++row) {
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) sum += *runs[i].numbers("loss")[row];
    CHECK(*means.numbers("placement=post mean")[row] == Approx(sum / 3));
    CHECK(means.numbers("placement=post n")[row] == 3.0);
  }
  CHECK(contains(read_file(lab.here / "m.svg"), "class=\"band c1 d0\""));
  CHECK(contains(read_file(lab.here / "m.html"), "class=\"band c1 d0\""));
  const ProcessResult alone = run_tool({"compare", "--mean", lab.run("small/placement=pre,seed=1")});
  CHECK(alone.code == 0);
  CHECK(contains(alone.err, "no two of these runs differ in run.seed only"));
  CHECK(contains(alone.out, "\nplacement=pre,seed=1  "));
  // The same run under two names is not two runs.
  std::filesystem::copy(lab.run("small/placement=pre,seed=1"), lab.run("copy"));
  const ProcessResult twice = run_tool({"compare", "--mean", lab.run("small/placement=pre,seed=1"), lab.run("copy")});
  CHECK(twice.code == 2);
  CHECK(twice.out.empty());
  CHECK(contains(twice.err, "have the same configuration and the same run.seed = 1"));
}

TEST_CASE("a comparison of what is missing, empty or damaged fails on stderr with nothing on stdout") {
  const Lab lab;
  REQUIRE(lab("run").code == 0);
  const std::string svg = (lab.here / "x.svg").string();
  for (const std::string& wrong :
       {lab.run("none"), (lab.here / "none.csv").string(), lab.here.path().string(), lab.here.write("empty.csv", ""),
        lab.here.write("bad.csv", "step,loss\n1,452a29\n"), lab.here.write("cut.csv", "step,loss\n1"),
        lab.here.write("utf16.csv", std::string("\xff\xfes\0t\0", 6))}) {
    const ProcessResult r = run_tool({"compare", lab.run("small"), wrong, "--svg", svg});
    INFO(wrong << "\n" << r.err);
    CHECK(r.code == 1);
    CHECK(r.out.empty());
    CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
    CHECK(contains(r.err, wrong));
    CHECK_FALSE(std::filesystem::exists(svg));
  }
  const ProcessResult metric = run_tool({"compare", lab.run("small"), "--metric", "los"});
  CHECK(metric.code == 1);
  CHECK(contains(metric.err, "no column 'los' (did you mean 'loss'?)"));
}

TEST_CASE("a CSV with a byte order mark and CRLF compares like the same file without") {
  const Lab lab;
  REQUIRE(lab("run").code == 0);
  const std::string plain = read_file(lab.here / "runs/small/metrics.csv");
  std::string other = "\xEF\xBB\xBF";
  for (const char c : plain) other += c == '\n' ? std::string("\r\n") : std::string(1, c);
  std::filesystem::create_directories(lab.here / "a");
  std::filesystem::create_directories(lab.here / "b");
  const std::string a = lab.here.write("a/m.csv", plain), b = lab.here.write("b/m.csv", other);
  CHECK(run_tool({"compare", a}).out == run_tool({"compare", b}).out);
}

TEST_CASE("the cost of a huge model is counted in 64 bits, shown by check and refused by run") {
  const Lab lab;
  // The largest id makes a vocabulary of 50257; logits of 64 x 1024 x 50257 floats are 12.27 GiB.
  std::string ids;
  for (int i = 0; i < 2048; ++i) ids += {static_cast<char>(0x50), static_cast<char>(0xC4)};  // 50256, little-endian
  const std::string data = lab.here.write("ids.bin", ids);
  std::vector<std::string> sets;
  for (const std::string& set :
       {std::string("data.source=tokens"), "data.path=" + data, std::string("train.batch=64"),
        std::string("model.context=1024"), std::string("train.slots=1"), std::string("data.validation=0")})
    sets.insert(sets.end(), {"--set", set});
  std::vector<std::string> words = {"check", lab.config};
  words.insert(words.end(), sets.begin(), sets.end());
  const ProcessResult check = run_tool(words);
  INFO(check.out << check.err);
  REQUIRE(check.code == 0);
  CHECK(contains(check.out, "# vocabulary      50257\n"));
  const std::string key = "# memory          ";
  const std::string memory = check.out.substr(check.out.find(key) + key.size());
  REQUIRE(memory.find(" GiB") < 12);
  CHECK(*parse_double(memory.substr(0, memory.find(' '))) > 12.27);
  std::vector<std::string> larger = sets;
  larger.insert(larger.end(), {"--set", "train.batch=1048576", "--set", "train.slots=1"});
  larger[5] = "train.batch=1048576";
  larger.resize(sets.size());
  const ProcessResult run = lab("run", larger);
  CHECK(run.code == 1);
  CHECK(contains(run.err, "this model needs "));
  CHECK_FALSE(std::filesystem::exists(lab.here / "runs"));
}

TEST_CASE("threads are those asked for, and a run says how many it used") {
  const Lab lab;
  const auto used = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"--overwrite", "--set", "train.steps=1"};
    words.insert(words.end(), more.begin(), more.end());
    REQUIRE(lab("run", words).code == 0);
    return parse_json(read_file(lab.here / "runs/small/summary.json"), "summary").find("threads")->number;
  };
  CHECK(used({"--threads", "3"}) == 3);
  const char* before = std::getenv("OMP_NUM_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("OMP_NUM_THREADS", "2", 1);
  const double from_environment = used({}), over_it = used({"--threads", "1"});
  if (before == nullptr)
    ::unsetenv("OMP_NUM_THREADS");
  else
    ::setenv("OMP_NUM_THREADS", kept.c_str(), 1);
  CHECK((from_environment == 2 || from_environment == 1));  // 1 in a build without threads
  CHECK(over_it == 1);
}

TEST_CASE("check tells which parameters are spared weight decay, and how many") {
  const Lab lab;
  const ProcessResult r =
      run_tool({"check", lab.config, "--set", "model.norm=batchnorm", "--set", "model.qk_norm=rmsnorm"});
  CHECK(r.code == 0);
  // Per layer: 4 biases of 16 in attention, 64 + 16 in the feed-forward branch, 2 norms of 16 + 16, 2 QK gains of 8; a
  // final norm of 16 + 16.
  CHECK(contains(r.out, str("26 gains and biases, ", 2 * (64 + 80 + 64 + 16) + 32,
                            " elements, without weight decay; 10 running statistics\n")));
}

TEST_CASE("an interrupted sweep exits with 130, and called again finishes what it began") {
  const Lab lab("[sweep]\n\"run.seed\" = [1, 2]\n");
  const std::vector<std::string> longer = {"--set", "train.steps=1500"};
  {
    std::vector<std::string> words = {"sweep", lab.config, "--quiet", "--out", (lab.here / "runs").string()};
    words.insert(words.end(), longer.begin(), longer.end());
    Process sweep(words);
    const std::string metrics = lab.run("small/seed=1") + "/metrics.csv";
    REQUIRE(sweep.wait_until([&] {
      std::error_code none;
      const auto size = std::filesystem::file_size(metrics, none);
      return !none && size > 200;
    }));
    sweep.kill(SIGINT);
    CHECK(sweep.wait().code == 130);
  }
  CHECK_FALSE(std::filesystem::exists(lab.run("small/seed=2")));
  CHECK(lab("sweep", longer).code == 0);
  for (const char* seed : {"1", "2"})
    CHECK(read_csv(lab.run(str("small/seed=", seed)) + "/metrics.csv").cells.size() == 1500);
}

TEST_CASE("a corpus shorter than a window is refused by size and part, whatever its source") {
  const Lab lab;
  for (const char* source : {"stories", "markov"}) {
    const auto run = [&](const char* tokens) {
      return lab("run", {"--set", str("data.source=", source), "--set", str("data.tokens=", tokens)});
    };
    for (const char* tokens : {"1", "8", "9"}) {  // context 8: a window has 9 tokens, and validation takes a tenth
      const ProcessResult r = run(tokens);
      INFO(source << " " << tokens << " " << r.err);
      CHECK(r.code == 1);
      CHECK(contains(r.err, "part has "));
      CHECK(contains(r.err, "a window needs model.context + 1 = 9"));
    }
  }
  CHECK_FALSE(std::filesystem::exists(lab.here / "runs"));
}

TEST_CASE("compare --map shows a sweep as a grid, with image, CSV and page") {
  const Lab lab("[probe]\nevery = 10\n[sweep]\n\"model.layers\" = [1, 2]\n\"model.placement\" = [\"post\", \"pre\"]\n");
  REQUIRE(lab("sweep").code == 0);
  std::vector<std::string> words = {"compare", "--map", "model.layers,model.placement"};
  for (const char* placement : {"post", "pre"}) {
    for (const char* layers : {"1", "2"})
      words.push_back(lab.run(str("small/layers=", layers, ",placement=", placement)));
  }
  const std::vector<std::string> runs(words.begin() + 3, words.end());
  for (const char* kind : {"svg", "csv", "html"}) {
    words.push_back(str("--", kind));
    words.push_back((lab.here / str("m.", kind)).string());
  }
  const ProcessResult r = run_tool(words);
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(contains(r.out, "model.placement \\ model.layers  1"));
  const CsvTable cells = read_csv(lab.here / "m.csv");
  CHECK(cells.columns ==
        std::vector<std::string>{"model.layers", "model.placement", "loss", "verdict", "agree", "n", "runs"});
  REQUIRE(cells.cells.size() == 4);
  const Json summary =
      parse_json(read_file(std::filesystem::path(lab.run("small/layers=2,placement=post")) / "summary.json"), "");
  CHECK(cells.cells[1][1] == "post");
  CHECK(cells.cells[1][3] == summary.find("verdict")->string);
  CHECK(*cells.numbers("loss")[1] == Approx(summary.find("final_loss")->number).epsilon(1e-6));
  CHECK(contains(read_file(lab.here / "m.html"), "<h2>By layer</h2>"));
  CHECK(contains(read_file(lab.here / "m.svg"), "class=\"cell\""));

  CHECK(run_tool({"compare", runs[0], runs[1], "--map", "model.layers", "--mean"}).code == 2);
  const ProcessResult none = run_tool({"compare", runs[0], runs[1], "--map", "model.layer"});
  CHECK(none.code == 2);
  CHECK(contains(none.err, "no run has the key 'model.layer' (did you mean 'model.layers'?); the runs differ in"));
}

TEST_CASE("compare --layers draws a column of layers.csv, of runs and of probes") {
  const Lab lab("[probe]\nevery = 10\n");
  REQUIRE(lab("run").code == 0);
  REQUIRE(run_tool({"probe", lab.config, "--out", (lab.here / "runs").string()}).code == 0);
  const std::string svg = (lab.here / "l.svg").string(), csv = (lab.here / "l.csv").string();
  ProcessResult r = run_tool({"compare", lab.run("small"), "--layers", "stream_rms", "--svg", svg, "--csv", csv});
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(read_csv(csv).columns == std::vector<std::string>{"layer", "sublayer", "step 10", "step 20"});
  CHECK(contains(read_file(svg), "stream_rms by layer"));
  r = run_tool({"compare", lab.run("small-probe"), "--layers", "stream_rms", "--csv", csv});
  INFO(r.err);
  CHECK(r.code == 0);
  CHECK(read_csv(csv).columns == std::vector<std::string>{"layer", "sublayer", "step 0"});
  CHECK(run_tool({"compare", lab.run("small"), "--layers", "stream_rm"}).code == 1);
  for (const char* option : {"--html", "--map", "--smooth", "--metric"})
    CHECK(run_tool({"compare", lab.run("small"), "--layers", "stream_rms", option, (lab.here / "x").string()}).code ==
          2);
}

TEST_CASE("no output is written over a run's file, an input or another output, whatever its spelling") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun), out = (here / "runs").string();
  REQUIRE(run_tool({"run", config, "--out", out, "--quiet"}).code == 0);
  const std::string run = out + "/small", checkpoint = run + "/checkpoint.safetensors";
  const std::string before = read_file(checkpoint);
  const auto refusal = [](const std::vector<std::string>& words) {
    const ProcessResult r = run_tool(words);
    CHECK(r.code == 2);
    return r.err;
  };
  CHECK(refusal({"export", config, checkpoint}).find("is a file of the run in ") != std::string::npos);
  CHECK(read_file(checkpoint) == before);
  const std::string twice = (here / "new.svg").string(), spelt = (here / "./new.svg").string();
  CHECK(refusal({"compare", run, "--svg", twice, "--html", spelt}).find("is named for two outputs") !=
        std::string::npos);
  CHECK_FALSE(std::filesystem::exists(twice));
  CHECK(refusal({"compare", run, "--svg", out + "/./small/metrics.csv"}).find("written over what is read") !=
        std::string::npos);
  const std::string data = here.write("runs/small/text.txt", std::string(3000, 'a') + "bcde");
  CHECK(refusal({"run", config, "--out", out, "--overwrite", "--set", "data.source=text", "--set", "data.path=" + data})
            .find("would be overwritten with the run that reads it") != std::string::npos);
  CHECK(read_file(checkpoint) == before);
  CHECK(run_tool({"compare", "/dev/zero"}).err == "normlab: /dev/zero: a device, not a CSV file\n");
  const std::string inside = here.write("runs/small/layers.csv", kSmallRun);
  CHECK(refusal({"run", inside, "--out", out, "--overwrite"}).find("would be overwritten by the run") !=
        std::string::npos);
  CHECK(read_file(inside) == kSmallRun);
  std::filesystem::create_symlink("loop", here / "loop");
  const ProcessResult loop = run_tool({"compare", (here / "loop").string()});
  CHECK(loop.code == 1);
  CHECK(loop.err.find("internal error") == std::string::npos);
}
