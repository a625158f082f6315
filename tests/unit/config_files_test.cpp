// Sweeps, and the config files that come with the tool.
#include <map>

#include "../test.h"
#include "core/files.h"
#include "core/text.h"
#include "lab/sweep.h"

using namespace normlab;

namespace {

std::vector<std::string> names_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  std::vector<std::string> names;
  for (const SweepPoint& point : expand(parse_config(text, "s.toml", sets))) names.push_back(point.config.name);
  return names;
}

std::string error_of(const std::string& text, const std::vector<std::string>& sets = {}) {
  try {
    names_of(text, sets);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::filesystem::path> config_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(NORMLAB_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  return files;
}

}  // namespace

TEST_CASE("a sweep is every combination, the last axis fastest, each named by its values") {
  const auto points = expand(parse_config(
      "[sweep]\n\"model.placement\" = [\"post\", \"pre\"]\n\"train.warmup\" = [0, 200]\n\"train.lr\" = [1e-3]\n",
      "s.toml", {"model.layers=2"}));
  std::vector<std::string> names;
  for (const SweepPoint& p : points) names.push_back(p.config.name);
  CHECK(names == std::vector<std::string>{"placement=post,warmup=0,lr=0.001", "placement=post,warmup=200,lr=0.001",
                                          "placement=pre,warmup=0,lr=0.001", "placement=pre,warmup=200,lr=0.001"});
  CHECK(points[1].config.placement == "post");
  CHECK(points[1].config.warmup == 200);
  CHECK(points[2].config.placement == "pre");
  CHECK(points[2].config.warmup == 0);
  for (const SweepPoint& p : points) CHECK(p.config.layers == 2);
}

TEST_CASE("axes that end alike keep their section, and values become plain file names") {
  CHECK(names_of("[sweep]\n\"run.seed\" = [1]\n\"data.seed\" = [2]\n") ==
        std::vector<std::string>{"run.seed=1,data.seed=2"});
  CHECK(names_of("[data]\nsource = \"text\"\n[sweep]\n\"data.path\" = [\"../a b.txt\"]\n") ==
        std::vector<std::string>{"path=..-a-b.txt"});
  CHECK(names_of("[sweep]\n\"train.betas\" = [[0.9, 0.99]]\n") == std::vector<std::string>{"betas=0.9--0.99"});
  CHECK(names_of("[sweep]\n\"model.bias\" = [true, false]\n") == std::vector<std::string>{"bias=true", "bias=false"});
}

TEST_CASE("a sweep over norms gives each norm its own options and eps") {
  const auto points =
      expand(parse_config("[sweep]\n\"model.norm\" = [\"layernorm\", \"rmsnorm\", \"groupnorm\"]\n", "s.toml", {}));
  CHECK(points[0].config.norm_eps == 1e-5);
  CHECK(points[1].config.norm_eps == 1e-6);
  CHECK(points[2].config.norm_options.count("groups") == 1);
  CHECK(points[1].config.norm_options.count("groups") == 0);
}

TEST_CASE("--set gives a swept key other values, one or a list") {
  const auto names = [](const std::string& text, const std::vector<std::string>& sets) {
    std::vector<std::string> out;
    for (const SweepPoint& point : expand(parse_config(text, "s.toml", sets))) out.push_back(point.config.name);
    return out;
  };
  const std::string two = "[sweep]\n\"run.seed\" = [1, 2]\n\"model.layers\" = [6, 12]\n";
  CHECK(names(two, {"run.seed=7"}) == std::vector<std::string>{"seed=7,layers=6", "seed=7,layers=12"});
  CHECK(names(two, {"run.seed=[7, 8]", "model.layers=3"}) ==
        std::vector<std::string>{"seed=7,layers=3", "seed=8,layers=3"});
  const std::string betas = "[sweep]\n\"train.betas\" = [[0.9, 0.95], [0.9, 0.98]]\n";
  CHECK(names(betas, {"train.betas=[0.8, 0.9]"}).size() == 1);
  CHECK(names(betas, {"train.betas=[[0.8, 0.9], [0.7, 0.9], [0.6, 0.9]]"}).size() == 3);
}

TEST_CASE("a sweep that makes no sense is refused at its place") {
  CHECK(error_of("[sweep]\n\"train.lr\" = []\n") ==
        "s.toml:2:1: sweep key 'train.lr' must be a list of one or more values");
  CHECK(error_of("[sweep]\n\"train.lr\" = 1e-3\n") ==
        "s.toml:2:1: sweep key 'train.lr' must be a list of one or more values");
  CHECK(error_of("[sweep]\ntrain.lr = [1e-3]\n") ==
        "s.toml:2:1: sweep key 'train' must be a list of one or more values; put keys with dots in quotes: "
        "\"model.norm\" = [...]");
  CHECK(error_of("sweep = 3\n") == "s.toml:1:1: 'sweep' must be a table of lists");
  CHECK(error_of("[sweep]\n\"model.nrom\" = [\"rmsnorm\"]\n") ==
        "s.toml:2:1: unknown key 'model.nrom' (did you mean 'model.norm'?)");
  CHECK(error_of("[sweep]\n\"model.norm\" = [\"rmsnorm\", \"rmsnrom\"]\n")
            .rfind("s.toml:2:1: 'model.norm' is 'rmsnrom' (did you mean", 0) == 0);
  CHECK(error_of("[sweep]\n\"run.name\" = [\"a\"]\n") ==
        "s.toml:2:1: 'run.name' cannot be swept; runs are named by their values");
  CHECK(error_of("[sweep]\n\"train.lr\" = [1, 1.0]\n") ==
        "s.toml:2:1: two combinations of the sweep are the same run: lr=1.0");
  CHECK(error_of("[model]\nheads = 4\n[sweep]\n\"model.kv_heads\" = [0, 4]\n") ==
        "s.toml:4:1: two combinations of the sweep are the same run: kv_heads=4");
  CHECK(error_of("[sweep]\n\"train.lr\" = [1]\n", {"train.lr=[]"}) == "--set train.lr: 'train.lr' has no values");
  CHECK(
      error_of("[sweep]\n\"train.lr\" = [1]\n", {"train.lr=[\"x\"]"}).rfind("--set train.lr: 'train.lr' must be", 0) ==
      0);
  // One bad combination is found before the first run starts.
  CHECK(error_of("[sweep]\n\"model.heads\" = [4, 8]\n\"model.kv_heads\" = [8]\n") ==
        "s.toml:3:1: 'model.heads' (4) must be a multiple of 'model.kv_heads' (8)");
}

TEST_CASE("a sweep that explodes is refused before it is expanded") {
  std::string text = "[sweep]\n";
  for (const char* key : {"run.seed", "data.seed", "train.warmup", "train.steps"}) {
    text += str("\"", key, "\" = [");
    for (int i = 1; i <= 20; ++i) text += str(i, ", ");
    text += "]\n";
  }
  CHECK(error_of(text) == "s.toml:5:1: the sweep has more than 100000 combinations");
}

TEST_CASE("the annotated base config names every key once, with its default") {
  const std::string path = NORMLAB_SOURCE_DIR "/configs/base.toml";
  std::map<std::string, int> named;
  for (const Setting& s : read_config(path, {}).settings) ++named[s.key];
  RunConfig standard;
  std::map<std::string, int> wanted;
  for (const Field& f : fields(standard)) wanted[f.key] = 1;
  CHECK(named == wanted);
  CHECK(dump(resolve(read_config(path, {}).settings)) == dump(resolve({})));
}

TEST_CASE("the annotated base config explains every key as the tool does") {
  const std::string text = read_file(NORMLAB_SOURCE_DIR "/configs/base.toml");
  RunConfig standard;
  for (const Field& f : fields(standard)) {
    INFO(f.key);
    const std::string leaf = f.key.substr(f.key.find('.') + 1);
    bool explained = false;
    for (const std::string& line : split(text, '\n')) {
      explained = explained || (line.rfind(leaf + " = ", 0) == 0 && line.find("# " + f.help) != std::string::npos);
    }
    CHECK(explained);
    // Norms and placements are listed by the tool; a new one must not need an edit here.
    if (f.help.find("normlab list") != std::string::npos || f.key == "model.qk_norm" || f.key == "model.v_norm")
      continue;
    for (const std::string& choice : f.choices) CHECK(text.find(choice) != std::string::npos);
  }
}

TEST_CASE("every config that comes with the tool is valid, alone or as a sweep") {
  const auto files = config_files();
  CHECK(files.size() >= 8);
  for (const auto& path : files) {
    INFO(path);
    const ConfigFile file = read_config(path, {});
    const RunConfig config = resolve(file.settings);
    if (!file.sweep.empty()) CHECK(expand(file).size() >= 2);
    if (path.stem() != "base") CHECK(config.name == path.stem().string());
  }
}
