// The structure of the sources, held by reading them.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "core/files.h"
#include "core/text.h"
#include "normlab/norm.h"
#include "normlab/placement.h"
#include "test.h"

using namespace normlab;
namespace fs = std::filesystem;

namespace {

struct Source {
  fs::path path;  // below the root
  std::string text;
};

std::vector<Source> sources() {
  const fs::path root = NORMLAB_SOURCE_DIR;
  std::vector<Source> out;
  for (const char* folder : {"src", "include"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file()) out.push_back({fs::relative(entry.path(), root), read_file(entry.path())});
    }
  }
  return out;
}

std::vector<std::string> includes_of(const std::string& text) {
  static const std::regex pattern("#include \"([^\"]+)\"");
  std::vector<std::string> out;
  for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it) out.push_back((*it)[1]);
  return out;
}

// The arguments of the call whose '(' stands at `open`.
std::vector<std::string> arguments(const std::string& text, std::size_t open) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (std::size_t i = open + 1; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == ')' || c == '}' || c == ']') && depth-- == 0) break;
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ',' && depth == 0) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

// Whether an expression records ops, or declares parameters: of two that do the same it matters which comes first.
const std::regex kRecordsOps(
    "\\b(f|w\\.(norm|head_norm)|add|multiply|affine|scale_channels|shift_channels|scale_parts|divide|rms|center|"
    "activation|detach)\\(");
const std::regex kDeclares("\\b(f|w\\.(norm|head_norm|learned)|s\\.(gain|bias|number|vector|state|common_gain))\\(");

// The layers a folder of src/ may include, besides itself and the public headers its layer provides.
const std::map<std::string, std::vector<std::string>> kMayInclude = {
    {"core", {}},
    {"config", {"core"}},
    {"report", {"core"}},
    {"data", {"core"}},
    {"kernels", {"core"}},
    {"graph", {"core", "kernels"}},
    {"ops", {"core", "kernels", "graph"}},
    {"model", {"core", "kernels", "graph", "ops"}},
    {"norms", {"core", "kernels", "graph", "ops", "model"}},
    {"inits", {"core", "graph", "model"}},
    {"placements", {"core", "kernels", "graph", "ops", "model", "inits"}},
    {"train", {"core", "config", "data", "kernels", "graph", "ops", "model", "norms", "inits", "placements"}},
    {"lab",
     {"core", "config", "report", "data", "kernels", "graph", "ops", "model", "norms", "inits", "placements", "train"}},
    {"app",
     {"core", "config", "report", "data", "kernels", "graph", "ops", "model", "norms", "inits", "placements", "train",
      "lab"}},
};

// Which layer a public header belongs to.
const std::map<std::string, std::string> kPublic = {
    {"real", "core"},   {"error", "core"},  {"shape", "graph"},   {"params", "graph"},
    {"graph", "graph"}, {"ops", "ops"},     {"norm", "model"},    {"placement", "model"},
    {"init", "model"},  {"model", "model"}, {"options", "model"}, {"main", "app"},
};

std::string layer_of(const std::string& included) {
  const auto parts = split(included, '/');
  if (parts[0] != "normlab") return parts[0];
  const auto at = kPublic.find(fs::path(parts[1]).stem().string());
  return at == kPublic.end() ? "unknown public header " + included : at->second;
}

}  // namespace

TEST_CASE("layers include only what lies to their left") {
  int checked = 0;
  for (const Source& source : sources()) {
    if (*source.path.begin() != "src") continue;
    const std::string layer = std::next(source.path.begin())->string();
    REQUIRE(kMayInclude.count(layer) == 1);
    const auto& allowed = kMayInclude.at(layer);
    for (const std::string& include : includes_of(source.text)) {
      const std::string other = layer_of(include);
      INFO(source.path << " includes " << include);
      CHECK((other == layer || std::find(allowed.begin(), allowed.end(), other) != allowed.end()));
      ++checked;
    }
  }
  CHECK(checked > 100);
}

TEST_CASE("only one file knows OpenMP and only the kernels know intrinsics") {
  for (const Source& source : sources()) {
    INFO(source.path);
    if (source.path != fs::path("src/core/parallel.cpp")) {
      CHECK(source.text.find("#include <omp.h>") == std::string::npos);
      CHECK_FALSE(std::regex_search(source.text, std::regex("#pragma omp (parallel|for|critical|atomic|task)")));
    }
    if (source.path.parent_path() != fs::path("src/kernels"))
      CHECK(source.text.find("immintrin.h") == std::string::npos);
  }
}

TEST_CASE("no file is longer than 350 lines") {
  for (const Source& source : sources()) {
    INFO(source.path);
    CHECK(std::count(source.text.begin(), source.text.end(), '\n') <= 350);
  }
}

TEST_CASE("every norm, init and placement file is registered") {
  const auto records = [](const char* folder) {
    const std::regex record("\nconst (NormDef|InitDef|Placement) [a-z0-9_]+ = ");
    std::ptrdiff_t count = 0;
    for (const Source& source : sources()) {
      if (source.path.parent_path() == fs::path("src") / folder)
        count += std::distance(std::sregex_iterator(source.text.begin(), source.text.end(), record), {});
    }
    return static_cast<std::size_t>(count);
  };
  CHECK(records("norms") == all_norms().size());
  CHECK(records("inits") == all_inits().size());
  CHECK(records("placements") == all_placements().size());
}

TEST_CASE("the build keeps NaN guards and runs on other processors") {
  const std::string build =
      std::regex_replace(read_file(fs::path(NORMLAB_SOURCE_DIR) / "CMakeLists.txt"), std::regex("#[^\n]*"), "");
  for (const char* flag : {"-ffast-math", "-Ofast", "-march=native", "-funsafe-math", "-ffinite-math"}) {
    INFO(flag);
    CHECK(build.find(flag) == std::string::npos);
  }
  CHECK(build.find("-ffp-contract=off") != std::string::npos);
#ifdef __FINITE_MATH_ONLY__
  CHECK(__FINITE_MATH_ONLY__ == 0);
#endif
}

TEST_CASE("the top level holds what it should and nothing else") {
  const std::vector<std::string> allowed = {"src",       "include", "configs", "experiments", "tests", "CMakeLists.txt",
                                            "README.md", "build",   "runs"};
  for (const auto& entry : fs::directory_iterator(NORMLAB_SOURCE_DIR)) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    CHECK((name[0] == '.' || name.rfind("build", 0) == 0 ||
           std::find(allowed.begin(), allowed.end(), name) != allowed.end()));
  }
}

TEST_CASE("no call of a norm or a placement leaves it to the compiler which of two recordings comes first") {
  // The order of a call's arguments is the compiler's choice, and that of ops and parameters is part of the numbers.
  std::string found;
  for (const Source& source : sources()) {
    const std::string folder = source.path.parent_path().string();
    if (folder != "src/norms" && folder != "src/placements") continue;
    const std::string text = std::regex_replace(source.text, std::regex("//[^\n]*"), "");
    for (std::size_t at = text.find('('); at != std::string::npos; at = text.find('(', at + 1)) {
      const std::vector<std::string> all = arguments(text, at);
      const auto count = [&](const std::regex& what) {
        return std::count_if(all.begin(), all.end(), [&](const std::string& a) { return std::regex_search(a, what); });
      };
      if (count(kRecordsOps) > 1 || count(kDeclares) > 1)
        found += str(source.path.string(), ": ", text.substr(at, 60), "\n");
    }
  }
  CHECK(found == "");
  CHECK(arguments("add(a(1, 2), f(x))", 3) == std::vector<std::string>{"a(1, 2)", " f(x)"});
}
