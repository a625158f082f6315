// The command line from outside: words, exit codes, and that a refusal writes nothing.
#include "app/cli.h"

#include <algorithm>

#include "../process.h"
#include "../small_run.h"
#include "core/text.h"
#include "kernels/kernels.h"
#include "normlab/init.h"
#include "normlab/norm.h"
#include "normlab/placement.h"
#include "train/optimizer.h"
#include "train/schedule.h"

using namespace normlab;

namespace {

// What a refused command must be: this exit code, nothing on stdout, one line on stderr that starts so.
void check_refused(const std::vector<std::string>& arguments, int code, const std::string& message) {
  const ProcessResult r = run_tool(arguments);
  INFO(join(arguments, " ") << "\n" << r.err);
  CHECK(r.code == code);
  CHECK(r.out.empty());
  CHECK(r.err.rfind("normlab: " + message, 0) == 0);
  CHECK(std::count(r.err.begin(), r.err.end(), '\n') == 1);
}

std::string list_of(const std::string& name) {
  const ProcessResult r = run_tool({"list", name});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  return "\n" + r.out;
}

template <class Registry>
void check_listed(const Registry& registry, const std::string& list) {
  for (const auto& entry : registry) {
    std::string name;
    if constexpr (std::is_pointer_v<std::decay_t<decltype(entry)>>) {
      name = entry->name;
    } else {
      name = entry.name;
    }
    INFO(name);
    CHECK(list.find("\n" + name + " ") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("help and version are results: on stdout, exit code 0") {
  for (const Command& command : commands()) {
    const ProcessResult r = run_tool({std::string(command.name), "--help"});
    CHECK(r.code == 0);
    CHECK(r.err.empty());
    CHECK(r.out.rfind(str("usage: normlab ", command.name, " "), 0) == 0);
    for (const OptionDef& option : command.options) CHECK(r.out.find(option.name) != std::string::npos);
  }
  const ProcessResult general = run_tool({"--help"});
  CHECK(general.code == 0);
  for (const Command& command : commands())
    CHECK(general.out.find(str("\n  ", command.name, " ")) != std::string::npos);
  const ProcessResult version = run_tool({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.rfind("normlab ", 0) == 0);
}

TEST_CASE("no command at all shows the help on stderr and is an error") {
  const ProcessResult r = run_tool({});
  CHECK(r.code == 2);
  CHECK(r.out.empty());
  CHECK(r.err.find("usage: normlab") != std::string::npos);
}

TEST_CASE("unknown commands, options and operands are refused with the nearest name") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun);
  check_refused({"rnu", config}, 2, "unknown command 'rnu' (did you mean 'run'?); see normlab --help");
  check_refused({"run", config, "--ovrwrite"}, 2,
                "normlab run: unknown option '--ovrwrite' (did you mean '--overwrite'?)");
  check_refused({"run", config, "more"}, 2, "normlab run: unexpected argument 'more'");
  check_refused({"run"}, 2, "normlab run needs CONFIG; see normlab run --help");
  check_refused({"run", config, "--out"}, 2, "--out needs a value: --out DIR");
  check_refused({"run", config, "--out", "a", "--out=b"}, 2, "--out is given twice");
  check_refused({"run", config, "--quiet=false"}, 2, "--quiet takes no value");
  check_refused({"run", config, "--resume", "--overwrite"}, 2, "--resume and --overwrite contradict each other");
  check_refused({"run", config, "--threads", "0"}, 2, "--threads must be an integer from 1 to 1024, not '0'");
  check_refused({"run", config, "--threads=two"}, 2, "--threads must be an integer from 1 to 1024, not 'two'");
  check_refused({"run", config, "--set", "train.lr"}, 2, "--set needs section.key=value, not 'train.lr'");
  check_refused({"list", "nroms"}, 2, "normlab list: unknown list 'nroms' (did you mean 'norms'?)");
  check_refused({"sample", here.path().string(), "--temperature", "-1"}, 2,
                "--temperature must be a number from 0 to 1000, not '-1'");
}

TEST_CASE("a config that is missing or no file is a failure, a wrong one a usage error, and nothing is written") {
  const ScratchDirectory here;
  const std::string out = (here / "runs").string();
  const std::string bad = here.write("bad.toml", "[model]\nnrom = \"rmsnorm\"\n");
  for (const char* command : {"run", "check", "data", "sweep"}) {
    check_refused({command, (here / "none.toml").string()}, 1, (here / "none.toml").string() + ": cannot open: ");
    check_refused({command, here.path().string()}, 1, here.path().string() + ": cannot read: ");
  }
  check_refused({"run", bad, "--out", out}, 2, bad + ":2:1: unknown key 'model.nrom' (did you mean 'model.norm'?)");
  const std::string good = here.write("good.toml", kSmallRun);
  check_refused({"run", good, "--out", out, "--set", "model.norm=rmsnrom"}, 2,
                "--set model.norm: 'model.norm' is 'rmsnrom' (did you mean 'rmsnorm'?)");
  check_refused(
      {"run", good, "--out", out, "--set", "model.norm=batchnorm", "--set", "train.batch=1", "--set",
       "model.context=1"},
      2, "--set model.norm: layers.0.attention.norm_in: a norm over the batch needs more than one position per batch");
  check_refused({"sweep", good, "--out", out}, 2, good + ": has no [sweep] section; use normlab run");
  const std::string sweep = here.write("sweep.toml", str(kSmallRun, "[sweep]\n\"train.lr\" = [1e-3, 1e-4]\n"));
  check_refused({"run", sweep, "--out", out}, 2, sweep + ":");
  for (const char* shard : {"0/2", "3/2", "1", "a/b", "1/2/3", ""}) {
    check_refused({"sweep", sweep, "--out", out, "--shard", shard}, 2,
                  str("--shard needs I/N with 1 <= I <= N, or slurm, not '", shard, "'"));
  }
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("data that cannot serve are refused before anything is written") {
  const ScratchDirectory here;
  const std::string out = (here / "runs").string(), config = here.write("c.toml", kSmallRun);
  const auto refused = [&](const std::string& path, const std::string& message) {
    check_refused({"run", config, "--out", out, "--set", "data.source=text", "--set", "data.path=" + path}, 1,
                  path + message);
  };
  refused((here / "none.txt").string(), ": cannot open: ");
  refused(here.path().string(), ": cannot read: ");
  refused(here.write("empty.txt", ""), ": the file is empty");
  // Context 8 needs windows of 9: the training part of 10 has 9, the validation part 1.
  refused(here.write("8.txt", "abcdefgh"),
          " by character: the training part has 7 of 8 tokens (data.validation = 0.1), a window needs model.context + "
          "1 = 9");
  refused(here.write("10.txt", "abcdefghij"), " by character: the validation part has 1 of 10 tokens");
  refused(here.write("bytes.txt", "abc\xC9\x41"), ": not valid UTF-8 at byte 3");
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("a model larger than the machine is refused before its memory is taken") {
  const ScratchDirectory here;
  const std::string out = (here / "runs").string(), config = here.write("c.toml", kSmallRun);
  check_refused({"run", config, "--out", out, "--set", "train.batch=65536", "--set", "model.context=300", "--set",
                 "model.width=16384"},
                1, "this model needs ");
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("a place where nothing can be written is one clear failure") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun), file = here.write("file", "text");
  check_refused({"run", config, "--out", file}, 1, file + "/small: cannot create directory: ");
  check_refused({"run", config, "--out", "/proc/none"}, 1, "/proc/none/small: cannot create directory: ");
  check_refused({"export", config, file + "/w.safetensors"}, 1, file + "/w.safetensors.tmp: cannot create: ");
  CHECK(read_file(file) == "text");
  std::filesystem::create_directories(here / "runs");
  here.write("runs/small", "a file where the run's directory would be");
  check_refused({"run", config, "--out", (here / "runs").string()}, 2,
                (here / "runs/small").string() + " is not a directory");
}

TEST_CASE("a directory that holds something else is not written into, by --overwrite or --resume either") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun);
  std::filesystem::create_directories(here / "runs/small");
  here.write("runs/small/thesis.txt", "years of work");
  const auto before = files_below(here.path());
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--overwrite"}, {"--resume"}}) {
    std::vector<std::string> arguments = {"run", config, "--out", (here / "runs").string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    check_refused(arguments, 2, (here / "runs/small").string() + " is not empty and holds no run");
  }
  CHECK(files_below(here.path()) == before);
}

TEST_CASE("results that cannot be written to stdout are a failure") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"list"}, {"check", config}, {"data", config, "--batches", "50"}, {"--help"}}) {
    ProcessOptions options;
    options.output = "/dev/full";
    const ProcessResult r = run_tool(arguments, options);
    INFO(join(arguments, " "));
    CHECK(r.code == 1);
    CHECK(r.err == "normlab: cannot write to standard output\n");
  }
}

TEST_CASE("list names every entry of every registry") {
  check_listed(all_norms(), list_of("norms"));
  check_listed(all_placements(), list_of("placements"));
  check_listed(all_inits(), list_of("inits"));
  check_listed(all_optimizers(), list_of("optimizers"));
  check_listed(all_schedules(), list_of("schedules"));
  check_listed(data_sources(), list_of("data"));
  check_listed(all_kernels(), list_of("kernels"));
  const std::string norms = list_of("norms"), everything = run_tool({"list"}).out;
  for (const NormDef* norm : all_norms()) {
    for (const OptionSpec& o : norm->options)
      CHECK(norms.find(str("option norm.", o.name, " = ")) != std::string::npos);
  }
  CHECK(everything.find(norms.substr(1)) != std::string::npos);
}

TEST_CASE("check prints the resolved config as a config, with parameters and memory, and writes nothing") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun);
  const auto before = files_below(here.path());
  const ProcessResult r = run_tool({"check", config, "--set", "model.placement=deepnorm"});
  CHECK(r.code == 0);
  CHECK(files_below(here.path()) == before);
  // What it prints is a config that resolves to the same run.
  CHECK(dump(resolve(parse_config(r.out, "check", {}).settings)) == dump(small_run({"model.placement=deepnorm"})));
  CHECK(r.out.find("# parameters ") != std::string::npos);
  CHECK(r.out.find("# memory ") != std::string::npos);
  // The matrices that DeepNorm scales: (8 2)^(-1/4) = 0.5 times the root of 2 / 32 = 0.25.
  CHECK(r.out.find("std 0.125000") != std::string::npos);
}
