// Norms and placements that differ from layer to layer.
#include "train/layer_ranges.h"

#include "../small_run.h"
#include "../test.h"
#include "core/text.h"
#include "train/trainer.h"

using namespace normlab;

namespace {

using Names = std::vector<std::string>;

Names layers(const Names& ranges) { return names_of_layers("key", ranges, {"pre", "post"}, 4); }

std::string error_of(const Names& ranges) {
  try {
    layers(ranges);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

RunConfig config_of(const std::string& lines) {
  return resolve(parse_config("[model]\nlayers = 4\nwidth = 8\nheads = 2\ncontext = 8\nffn_width = 16\n" + lines +
                                  "[data]\ntokens = 4000\n[train]\nbatch = 2\nsteps = 3\nlr = 1e-2\n",
                              "c.toml", {})
                     .settings);
}

std::string refusal(const std::string& lines) {
  try {
    config_of(lines);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

struct Trained {
  std::vector<double> losses;
  Names params;
};

Trained train(const std::string& lines) {
  const RunConfig config = config_of(lines);
  const Corpus corpus = load_corpus(data_config(config), config.context);
  const Batches batches(corpus, 1, config.context);
  Trainer trainer(model_config(config, corpus.vocabulary()), train_config(config), &batches, 1);
  Trained out;
  for (int i = 0; i < 3; ++i) out.losses.push_back(trainer.step().loss);
  for (int p = 0; p < trainer.params().count(); ++p) out.params.push_back(trainer.params().spec(p).name);
  return out;
}

}  // namespace

TEST_CASE("ranges name every layer exactly once, in any order") {
  CHECK(layers({"post:1-2", "pre:0", "pre:3"}) == Names{"pre", "post", "post", "pre"});
  CHECK(layers({"pre:0-3"}) == Names{"pre", "pre", "pre", "pre"});
  CHECK(layers({}).empty());
}

TEST_CASE("a range that is none, has no such name, lies outside, overlaps or leaves a gap is refused") {
  CHECK(error_of({"pre"}) == "'key' has 'pre'; expected \"name:first-last\" or \"name:layer\"");
  CHECK(error_of({"pre:0-1-2"}) == "'key' has 'pre:0-1-2'; expected \"name:first-last\" or \"name:layer\"");
  CHECK(error_of({"pre:"}) == "'key' has 'pre:'; expected \"name:first-last\" or \"name:layer\"");
  CHECK(error_of({"pre:-1"}) == "'key' has 'pre:-1'; expected \"name:first-last\" or \"name:layer\"");
  CHECK(error_of({"prr:0-3"}) == "'key' has 'prr:0-3' (did you mean 'pre'?); expected one of: pre, post");
  CHECK(error_of({"pre:0-4"}) == "'key' has 'pre:0-4'; layers go from 0 to 3 ('model.layers' is 4)");
  CHECK(error_of({"pre:2-1"}) == "'key' has 'pre:2-1', a range that runs backwards");
  CHECK(error_of({"pre:0-2", "post:2-3"}) == "'key' names layer 2 twice: 'pre' and 'post:2-3'");
  CHECK(error_of({"pre:0", "post:3"}) == "'key' names nothing for layer 1-2");
  CHECK(error_of({"pre:0-2"}) == "'key' names nothing for layer 3");
}

TEST_CASE("a config says where its ranges are wrong, and refuses two defaults for one option") {
  CHECK(refusal("layer_placement = [\"pre:0-2\"]\n") ==
        "c.toml:7:1: 'model.layer_placement' names nothing for layer 3");
  CHECK(refusal("layer_norm = [\"rmsnorm:0-3\", 4]\n") ==
        "c.toml:7:1: 'model.layer_norm' must be a list of strings; one is 4");
  CHECK(refusal("layer_norm = \"rmsnorm:0-3\"\n") ==
        "c.toml:7:1: 'model.layer_norm' must be a list of strings, not \"rmsnorm:0-3\"");
}

TEST_CASE("options of every norm and placement of a model are keys, and the dump reads back") {
  const RunConfig config = config_of(
      "layer_placement = [\"deepnorm:0-1\", \"pre:2-3\"]\nlayer_norm = [\"groupnorm:0\", \"layernorm:1-3\"]\n"
      "[norm]\ngroups = 2\n[placement]\nalpha = 1.5\n");
  CHECK(config.norm_options.at("groups") == 2);
  CHECK(config.placement_options.at("alpha") == 1.5);
  CHECK(config.placement_options.at("beta") == Approx(std::pow(32.0, -0.25)));  // of all 4 layers
  CHECK(differences(resolve(parse_config(dump(config), "d", {}).settings), config).empty());
}

TEST_CASE("one range over all layers is the model without ranges, to the bit") {
  for (const char* name : {"post", "pre", "deepnorm", "sandwich"}) {
    INFO(name);
    CHECK(train(str("layer_placement = [\"", name, ":0-3\"]\n")).losses ==
          train(str("placement = \"", name, "\"\n")).losses);
  }
}

TEST_CASE("each layer has the norm and the sites of its own placement; the last one decides on the final norm") {
  const Names names = train(
                          "norm = \"layernorm\"\nlayer_placement = [\"post:0\", \"sandwich:1\", \"pre:2-3\"]\n"
                          "layer_norm = [\"rmsnorm:0-1\", \"layernorm:2-3\"]\n")
                          .params;
  Names norms;
  for (const std::string& name : names)
    if (name.find("norm") != std::string::npos) norms.push_back(name);
  Names expected;
  const auto site = [&](int layer, const char* sublayer, const char* at, bool bias) {
    expected.push_back(str("layers.", layer, ".", sublayer, ".", at, ".weight"));
    if (bias) expected.push_back(str("layers.", layer, ".", sublayer, ".", at, ".bias"));
  };
  for (const char* sublayer : {"attention", "ffn"}) site(0, sublayer, "norm_post", false);
  for (const char* sublayer : {"attention", "ffn"})
    for (const char* at : {"norm_in", "norm_out"}) site(1, sublayer, at, false);
  for (int layer : {2, 3})
    for (const char* sublayer : {"attention", "ffn"}) site(layer, sublayer, "norm_in", true);
  expected.push_back("final_norm.weight");
  expected.push_back("final_norm.bias");
  CHECK(norms == expected);
}
