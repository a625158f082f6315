// Interrupted anywhere and resumed, a run ends in the bytes of the straight run; under anything else it is refused.
#include <algorithm>

#include "../process.h"
#include "../small_run.h"
#include "../stopped_run.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "core/text.h"
#include "lab/run.h"

using namespace normlab;

namespace {

RunOptions options(const ScratchDirectory& here, bool resume, int stop = 0) {
  set_threads(1);
  return stopping_after(here, resume, stop);
}

RunConfig with(const std::vector<std::string>& sets, const std::vector<std::string>& more = {}) {
  std::vector<std::string> all = sets;
  all.insert(all.end(), more.begin(), more.end());
  return small_run(all);
}

// The files that must not depend on interruptions.
std::map<std::string, std::string> result_files(const ScratchDirectory& here) {
  std::map<std::string, std::string> out;
  for (const char* name : {"metrics.csv", "checkpoint.safetensors", "config.toml"})
    out[name] = read_file(here / (std::string("small/") + name));
  return out;
}

std::string error_of(const RunConfig& config, const RunOptions& o, int code) {
  try {
    train_run(config, o);
  } catch (const Error& error) {
    CHECK(error.exit_code() == code);
    return error.what();
  }
  return "no error";
}

std::int64_t rows_of(const std::filesystem::path& csv) {
  if (!std::filesystem::exists(csv)) return 0;
  const std::string text = read_file(csv);
  return std::count(text.begin(), text.end(), '\n');
}

const std::vector<std::vector<std::string>> kVariants = {
    {"model.norm=rmsnorm", "model.dropout=0.2", "train.accumulate=2", "train.warmup=15"},
    {"model.norm=batchnorm", "model.placement=sandwich", "train.optimizer=adamw", "train.weight_decay=0.1",
     "train.clip=0.5"},
    {"model.norm=layernorm", "model.placement=deepnorm", "train.optimizer=sgd", "train.momentum=0.9",
     "train.schedule=cosine", "data.padding=0.2"},
    {"model.norm=instancenorm", "model.qk_norm=rmsnorm", "train.schedule=wsd", "model.tie_embeddings=true"},
    {"model.placement=normformer", "placement.scale_skip=true", "train.optimizer=adamw", "train.weight_decay=0.1"},
    {"model.placement=rezero"},
    {"model.placement=lns", "model.norm=powernorm", "norm.warmup=7", "model.layers=3"},
    {"model.placement=admin", "placement.profile=true", "model.norm=layernorm"},
    {"model.placement=keel", "model.norm=scalenorm", "model.layers=3"},
    {"model.qk_norm=l2norm", "model.attention_scale=8", "model.attention_scale_learned=true", "model.attention_cap=5",
     "model.logit_cap=10", "train.z_loss=0.01"}};

}  // namespace

TEST_CASE("a run stopped after any number of steps, several times, resumes to the bytes of the straight run") {
  for (const std::vector<std::string>& variant : kVariants) {
    INFO(join(variant, " "));
    const ScratchDirectory straight, cut;
    train_run(with(variant), options(straight, false));
    CHECK(train_run(with(variant), options(cut, false, 4)).verdict.name == "interrupted");
    CHECK(train_run(with(variant), options(cut, true, 1)).steps == 5);
    CHECK(train_run(with(variant), options(cut, true, 9)).steps == 14);
    const RunOutcome last = train_run(with(variant), options(cut, true));
    CHECK(last.steps == 20);
    CHECK(last.verdict.name != "interrupted");
    CHECK(result_files(cut) == result_files(straight));
    CHECK(train_run(with(variant), options(cut, true)).already_done);
  }
}

TEST_CASE("checkpoint intervals and threads do not move a run", "[threads]") {
  const ScratchDirectory plain, often;
  train_run(with(kVariants[0]), options(plain, false));
  RunOptions o = options(often, false);
  set_threads(3);
  train_run(with(kVariants[0], {"checkpoint.every=1"}), o);
  set_threads(1);
  CHECK(result_files(often)["metrics.csv"] == result_files(plain)["metrics.csv"]);
}

TEST_CASE("a run killed at random moments and resumed each time ends in the bytes of the straight run") {
  for (std::size_t which = 0; which < 2; ++which) {
    const ScratchDirectory straight, killed;
    const std::string config = killed.write("c.toml", kSmallRun);
    std::vector<std::string> arguments = {
        "run", config, "--quiet", "--set", "train.steps=200", "--set", "checkpoint.every=3"};
    for (const std::string& set : kVariants[which]) arguments.insert(arguments.end(), {"--set", set});
    std::vector<std::string> once = arguments, again = arguments;
    once.insert(once.end(), {"--out", straight.path().string()});
    again.insert(again.end(), {"--out", killed.path().string(), "--resume"});
    REQUIRE(run_tool(once).code == 0);

    const Rng dice(which, stream_id("kills"));
    int kills = 0;
    for (std::uint64_t i = 0; i < 12; ++i) {
      Process run(again);
      // After some rows more than it began with, or (0) while it still starts; and a little later than that.
      const std::int64_t more = static_cast<std::int64_t>(dice.below(2 * i, 12));
      const std::int64_t rows = rows_of(killed / "small/metrics.csv");
      if (more > 0) run.wait_until([&] { return rows_of(killed / "small/metrics.csv") >= rows + more; });
      ::usleep(static_cast<useconds_t>(dice.below(2 * i + 1, 3000)));
      run.kill(SIGKILL);
      const ProcessResult r = run.wait();
      INFO(r.err);
      CHECK((r.code == 128 + SIGKILL || r.code == 0));
      kills += r.code == 0 ? 0 : 1;
    }
    CHECK(kills >= 8);
    const ProcessResult last = run_tool(again);
    INFO(last.err);
    CHECK(last.code == 0);
    CHECK(result_files(killed) == result_files(straight));
  }
}

TEST_CASE("what a killed run wrote after its checkpoint, and half a line, is cut and written again") {
  const ScratchDirectory here;
  const RunConfig config = with(kVariants[0], {"checkpoint.every=5"});
  train_run(config, options(here, false, 12));
  const std::string stopped = read_file(here / "small/metrics.csv");
  const std::string checkpoint = read_file(here / "small/checkpoint.safetensors");
  train_run(config, options(here, true));
  const auto wanted = result_files(here);
  // Back to the checkpoint after step 12, with rows of steps 13 to 20 and half of one more behind it.
  std::filesystem::remove(here / "small/summary.json");
  here.write("small/checkpoint.safetensors", checkpoint);
  here.write("small/metrics.csv", wanted.at("metrics.csv") + "21,672,0.0");
  train_run(config, options(here, true));
  CHECK(result_files(here) == wanted);
  CHECK(wanted.at("metrics.csv").rfind(stopped, 0) == 0);
}

TEST_CASE("metrics that lack rows before the checkpoint, or whose rows were edited, are refused, not continued") {
  const ScratchDirectory here;
  train_run(with({}), options(here, false, 12));
  const std::string metrics = read_file(here / "small/metrics.csv");
  const std::string refused = (here / "small/metrics.csv").string() +
                              ": the rows up to step 12 of the checkpoint are not those the run wrote: edited, or some "
                              "are missing; --overwrite runs it again";
  const auto message = [&](const std::string& content) {
    here.write("small/metrics.csv", content);
    return error_of(with({}), options(here, true), 1);
  };
  CHECK(message(metrics.substr(0, metrics.find("\n9,") + 1)) == refused);
  CHECK(message("") == refused);
  std::string edited = metrics;
  char& digit = edited[edited.find("\n9,") - 1];
  digit = digit == '3' ? '4' : '3';
  CHECK(message(edited) == refused);
  CHECK(message("step,loss\nseven,1\n") ==
        (here / "small/metrics.csv").string() + ":2: the first column is 'seven', not a step");
  CHECK(message("step,loss\n1,1\n") ==
        (here / "small/metrics.csv").string() + ":1: the columns are not those of this version");
  CHECK(std::filesystem::exists(here / "small/summary.json"));
  here.write("small/metrics.csv", metrics);
  CHECK_NOTHROW(train_run(with({}), options(here, true)));
}

TEST_CASE("blank lines behind the last row change nothing") {
  const ScratchDirectory here;
  train_run(with({}), options(here, false, 12));
  for (const char* name : {"small/metrics.csv", "small/timing.csv"})
    here.write(name, read_file(here / name) + "\n\r\n");
  train_run(with({}), options(here, true));
  const ScratchDirectory straight;
  train_run(with({}), options(straight, false));
  CHECK(result_files(here) == result_files(straight));
}

TEST_CASE("a damaged summary is refused with the way out, which works") {
  const ScratchDirectory here;
  train_run(with({}), options(here, false));
  const auto wanted = result_files(here);
  const std::filesystem::path summary = here / "small/summary.json";
  here.write("small/summary.json", read_file(summary).substr(0, 40));
  const std::string message = error_of(with({}), options(here, true), 1);
  CHECK(message.rfind(summary.string() + ": byte ", 0) == 0);
  CHECK(message.find("; it is made from the other files: delete it and resume again") != std::string::npos);
  std::filesystem::remove(summary);
  CHECK(train_run(with({}), options(here, true)).verdict.name != "");
  CHECK(result_files(here) == wanted);
  CHECK(std::filesystem::exists(summary));
}

TEST_CASE("a resume of a finished run puts its config back") {
  const ScratchDirectory here;
  train_run(with({}), options(here, false));
  const auto wanted = result_files(here);
  here.write("small/config.toml", "[train]\nlr = 7.0\n");
  CHECK(train_run(with({}), options(here, true)).already_done);
  CHECK(result_files(here) == wanted);
  std::filesystem::remove(here / "small/config.toml");
  CHECK(train_run(with({}), options(here, true)).already_done);
  CHECK(result_files(here) == wanted);
}

TEST_CASE("a run whose checkpoint was lost is neither passed off as done nor begun again over its rows") {
  const ScratchDirectory here;
  train_run(with({}), options(here, false));
  std::filesystem::remove(here / "small/checkpoint.safetensors");
  const std::string refused = (here / "small/checkpoint.safetensors").string() +
                              ": is missing, so the run cannot go on; --overwrite runs it again";
  const auto before = files_below(here.path());
  CHECK(error_of(with({}), options(here, true), 1) == refused);
  std::filesystem::remove(here / "small/summary.json");
  std::filesystem::remove(here / "small/config.toml");
  CHECK(error_of(with({}), options(here, true), 1) == refused);
  CHECK(read_file(here / "small/metrics.csv") == before.at("small/metrics.csv"));
}

TEST_CASE("a finished run whose rows were edited is not passed off as done") {
  const ScratchDirectory here;
  train_run(with({}), options(here, false));
  std::string metrics = read_file(here / "small/metrics.csv");
  char& digit = metrics[metrics.find("\n5,") - 1];
  digit = digit == '3' ? '4' : '3';
  here.write("small/metrics.csv", metrics);
  CHECK(error_of(with({}), options(here, true), 1).find("are not those the run wrote") != std::string::npos);
}

TEST_CASE("a resume under another configuration is refused with the key and both values") {
  const ScratchDirectory here;
  train_run(with({}), options(here, false, 6));
  const auto before = files_below(here.path());
  const std::string file = (here / "small/checkpoint.safetensors").string();
  const std::vector<std::vector<std::string>> changes = {
      {"train.lr=0.5", "'train.lr' was 0.001 and is now 0.5"},
      {"model.placement=post", "'model.placement' was \"pre\" and is now \"post\""},
      {"model.norm=layernorm", "'model.norm' was \"rmsnorm\" and is now \"layernorm\""},
      {"norm.eps=1e-5", "'norm.eps' was 1e-06 and is now 1e-05"},
      {"model.layers=3", "'model.layers' was 2 and is now 3"},
      {"model.tie_embeddings=true", "'model.tie_embeddings' was false and is now true"},
      {"data.tokens=5000", "'data.tokens' was 4000 and is now 5000"},
      {"eval.every=5", "'eval.every' was 7 and is now 5"},
      {"train.steps=10", "'train.steps' was 20 and is now 10"},
      {"run.seed=2", "'run.seed' was 1 and is now 2"}};
  for (const auto& change : changes) {
    CHECK(error_of(with({change[0]}), options(here, true), 2) ==
          file + ": cannot resume under another configuration: " + change[1]);
    CHECK(files_below(here.path()) == before);
  }
}

TEST_CASE("a run may grow where no rate depends on its length, and then equals the longer run") {
  for (const char* schedule : {"constant", "inverse_sqrt"}) {
    const std::vector<std::string> sets = {str("train.schedule=", schedule), "train.warmup=4", "model.dropout=0.1"};
    const ScratchDirectory longer, grown;
    train_run(with(sets, {"train.steps=33"}), options(longer, false));
    train_run(with(sets), options(grown, false));
    CHECK(train_run(with(sets, {"train.steps=33"}), options(grown, true)).steps == 33);
    CHECK(result_files(grown) == result_files(longer));
  }
  for (const char* schedule : {"cosine", "linear", "wsd"}) {
    const std::vector<std::string> sets = {str("train.schedule=", schedule)};
    const ScratchDirectory here;
    train_run(with(sets), options(here, false));
    CHECK(error_of(with(sets, {"train.steps=33"}), options(here, true), 2).find("'train.steps' was 20 and is now 33") !=
          std::string::npos);
  }
}

TEST_CASE("a damaged, cut or foreign checkpoint is refused by name and nothing is overwritten") {
  const ScratchDirectory here;
  train_run(with({}), options(here, false, 6));
  const std::string sound = read_file(here / "small/checkpoint.safetensors"),
                    file = (here / "small/checkpoint.safetensors").string();
  std::string flipped = sound;
  flipped[sound.size() - 40] ^= 1;
  for (const std::string& content :
       {std::string(), sound.substr(0, 4), sound.substr(0, sound.size() / 2), sound.substr(0, sound.size() - 1),
        sound + "x", flipped, std::string("not a checkpoint at all"), std::string(1000, '\0')}) {
    here.write("small/checkpoint.safetensors", content);
    const auto before = files_below(here.path());
    CHECK(error_of(with({}), options(here, true), 1).rfind(file + ": ", 0) == 0);
    CHECK(files_below(here.path()) == before);
  }
  // Another model's checkpoint, sound in itself.
  const ScratchDirectory other;
  train_run(small_run({"model.width=8"}), options(other, false, 6));
  here.write("small/checkpoint.safetensors", read_file(other / "small/checkpoint.safetensors"));
  CHECK(error_of(with({}), options(here, true), 2) ==
        file + ": cannot resume under another configuration: 'model.width' was 8 and is now 16");
}
