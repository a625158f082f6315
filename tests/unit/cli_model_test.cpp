// Sampling and exporting trained models from outside.
#include <set>

#include "../process.h"
#include "../small_run.h"
#include "core/text.h"
#include "kernels/kernels.h"
#include "train/safetensors.h"

using namespace normlab;

namespace {

constexpr const char* kTrained = R"([run]
name = "small"
[model]
layers = 1
width = 16
heads = 2
context = 8
norm = "batchnorm"
placement = "pre"
[data]
source = "text"
[train]
steps = 60
lr = 0.01
batch = 8
[eval]
every = 0
batches = 2
)";

// A small model trained on "abcabc...".
struct Trained {
  ScratchDirectory here;
  std::string config, text, run;
  Trained() {
    std::string pattern;
    for (int i = 0; i < 300; ++i) pattern += "abc";
    text = here.write("abc.txt", pattern);
    config = here.write("c.toml", kTrained);
    run = (here / "runs/small").string();
    const ProcessResult r =
        run_tool({"run", config, "--quiet", "--out", (here / "runs").string(), "--set", "data.path=" + text});
    INFO(r.err);
    REQUIRE(r.code == 0);
  }
  std::string sample(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"sample", run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult r = run_tool(arguments);
    INFO(r.err);
    CHECK(r.code == 0);
    return r.out;
  }
  ProcessResult exported(const std::string& from) const {
    return run_tool({"export", from, (here / "w.safetensors").string(), "--set", "data.path=" + text});
  }
};

}  // namespace

TEST_CASE("the weights of a run are exported though its data are gone") {
  const ScratchDirectory here;
  const std::string config = here.write("c.toml", kSmallRun),
                    text = here.write("t.txt", std::string(900, 'a') + "bcdefgh ");
  const std::string data = "data.path=" + text, out = (here / "runs").string(), to = (here / "w.safetensors").string();
  REQUIRE(run_tool({"run", config, "--out", out, "--quiet", "--set", "data.source=text", "--set", data}).code == 0);
  REQUIRE(run_tool({"export", out + "/small", to}).code == 0);
  const std::string with_data = read_file(to);
  std::filesystem::remove(text);
  REQUIRE(run_tool({"export", out + "/small", to}).code == 0);
  CHECK(read_file(to) == with_data);
}

TEST_CASE("a trained model goes on from a prompt, the same way for the same seed", "[threads]") {
  const Trained t;
  const std::string likeliest = t.sample({"--prompt", "bca", "--length", "9", "--temperature", "0"});
  CHECK(likeliest == "bcabcabcabca\n");
  const auto drawn = [&](const char* seed) {
    return t.sample({"--prompt", "a", "--length", "200", "--temperature", "20", "--seed", seed});
  };
  const std::string first = drawn("1");
  CHECK(first.size() == 1 + 200 + 1);
  CHECK(drawn("1") == first);
  CHECK(drawn("2") != first);
  CHECK(first.find_first_not_of("abc\n") == std::string::npos);
  CHECK(t.sample({"--length", "1"}).size() == 3);  // without a prompt from the corpus's first character
}

TEST_CASE("a prompt with a character the model never saw is refused by name") {
  const Trained t;
  const ProcessResult r = run_tool({"sample", t.run, "--prompt", "abz"});
  CHECK(r.code == 1);
  CHECK(r.out.empty());
  CHECK(r.err.rfind("normlab: character 'z' does not occur in ", 0) == 0);
}

TEST_CASE("sampling and exporting need a finished run, and say so") {
  const ScratchDirectory here;
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"sample", here.path().string()},
        {"export", here.path().string(), (here / "w.safetensors").string()}}) {
    const ProcessResult r = run_tool(command);
    CHECK(r.code == 1);
    CHECK(r.err == "normlab: " + here.path().string() + ": holds no checkpoint.safetensors; has the run finished?\n");
  }
  CHECK(run_tool({"sample", (here / "none").string()}).code == 1);
  CHECK_FALSE(std::filesystem::exists(here / "w.safetensors"));
}

TEST_CASE("an exported run holds the checkpoint's weights and running statistics and nothing of the optimizer") {
  const Trained t;
  REQUIRE(run_tool({"export", t.run, (t.here / "w.safetensors").string()}).code == 0);
  const SafetensorsFile weights = read_safetensors(t.here / "w.safetensors"),
                        checkpoint = read_safetensors(t.run + "/checkpoint.safetensors");
  std::set<std::string> names;
  for (const TensorBytes& tensor : weights.tensors) {
    INFO(tensor.name);
    names.insert(tensor.name);
    const TensorBytes* kept = checkpoint.find(tensor.name);
    REQUIRE(kept != nullptr);
    CHECK(kept->shape == tensor.shape);
    CHECK(kept->values == tensor.values);
    CHECK(tensor.name.rfind("optimizer.", 0) != 0);
  }
  CHECK(names.count("layers.0.ffn.norm_in.running_var") == 1);
  CHECK(names.count("head.weight") == 1);
  for (const TensorBytes& tensor : checkpoint.tensors)
    CHECK((tensor.name.rfind("optimizer.", 0) == 0 || names.count(tensor.name) == 1));
  // Adam's two moments for what is trained, none for what is not.
  CHECK(checkpoint.find("optimizer.1.head.weight") != nullptr);
  CHECK(checkpoint.find("optimizer.0.layers.0.ffn.norm_in.running_var") == nullptr);
}

TEST_CASE("an exported config holds the weights from which its run starts") {
  const Trained t;
  REQUIRE(t.exported(t.config).code == 0);
  const SafetensorsFile weights = read_safetensors(t.here / "w.safetensors");
  const ModelConfig model =
      model_config(resolve(parse_config(kTrained, "c.toml", {"data.path=" + t.text}).settings), 3);
  ParamStore store;
  Graph graph(store, {8, 8});
  build_decoder(graph, model);
  store.allocate();
  store.initialize(1);
  CHECK(weights.tensors.size() == static_cast<std::size_t>(store.count()));
  for (int p = 0; p < store.count(); ++p) {
    const ParamSpec& spec = store.spec(p);
    INFO(spec.name);
    std::vector<real> values(static_cast<std::size_t>(spec.shape.count()));
    copy_tensor(weights, "w", spec.name, spec.shape, values.data());
    CHECK(std::equal(values.begin(), values.end(), store.value(p)));
  }
  CHECK(run_tool({"export", t.run, (t.here / "w.safetensors").string(), "--set", "model.layers=2"}).code == 2);
}

TEST_CASE("an output never replaces what is read, nor another output") {
  const Trained t;
  const std::string checkpoint = t.run + "/checkpoint.safetensors", metrics = t.run + "/metrics.csv";
  const std::string before = read_file(checkpoint) + read_file(metrics) + read_file(t.config);
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"export", t.run, checkpoint},
           {"export", t.config, t.config},
           {"compare", metrics, "--svg", metrics},
           {"compare", t.run, "--csv",
            t.run + "/../" + std::filesystem::path(t.run).filename().string() + "/metrics.csv"},
           {"compare", t.run, "--svg", (t.here / "a").string(), "--html", (t.here / "a").string()}}) {
    INFO(words[0] << " " << words.back());
    CHECK(run_tool(words).code == 2);
  }
  CHECK(read_file(checkpoint) + read_file(metrics) + read_file(t.config) == before);
  CHECK_FALSE(std::filesystem::exists(t.here / "a"));
}

TEST_CASE("a run cannot go on, and a model not write, on other data than it was trained on") {
  const Trained t;
  std::string text = read_file(t.text);
  std::swap(text[0], text[1]);
  std::swap(text[text.size() / 2], text[text.size() / 2 + 1]);
  std::swap(text[10], text[20]);
  write_file_atomically(t.text, text);
  const ProcessResult r = run_tool({"run", t.config, "--resume", "--out", (t.here / "runs").string(), "--set",
                                    "data.path=" + t.text, "--set", "train.steps=80"});
  CHECK(r.code == 1);
  CHECK(r.err.find("cannot resume: the data are not those of the run") != std::string::npos);
  CHECK(run_tool({"sample", t.run}).code == 1);
}

TEST_CASE("a run cannot go on with other kernels, whose results would match neither") {
  const Trained t;
  ::setenv("NORMLAB_KERNELS", "portable", 1);
  const ProcessResult r = run_tool({"run", t.config, "--resume", "--out", (t.here / "runs").string(), "--set",
                                    "data.path=" + t.text, "--set", "train.steps=80"});
  ::unsetenv("NORMLAB_KERNELS");
  if (std::string(kernels().name) == "portable") {
    WARN("SKIPPED, not a pass: needs a processor with AVX2");
    return;
  }
  CHECK(r.code == 2);
  CHECK(r.err.find("set NORMLAB_KERNELS=") != std::string::npos);
}

TEST_CASE("a run cannot go on from exported weights") {
  const Trained t;
  const std::string weights = (t.here / "w.safetensors").string();
  REQUIRE(run_tool({"export", t.run, weights}).code == 0);
  std::filesystem::copy_file(weights, t.run + "/checkpoint.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  const ProcessResult r = run_tool({"run", t.config, "--resume", "--out", (t.here / "runs").string(), "--set",
                                    "data.path=" + t.text, "--set", "train.steps=80"});
  CHECK(r.code == 1);
  CHECK(r.err.find("checkpoint.safetensors: not a checkpoint of a run: 'step' is missing") != std::string::npos);
}
