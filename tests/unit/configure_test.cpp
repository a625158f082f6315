// What configuring the build needs, and which flags come out of it.
#include <cstdlib>

#include "../process.h"
#include "core/json.h"
#include "core/text.h"

using namespace normlab;

namespace {

// cmake over the sources without Catch2: exit status (0 = done) and what it said.
std::pair<int, std::string> configure(const ScratchDirectory& here, const std::string& option) {
  const std::string log = (here / "log").string();
  const std::string command = str("cmake -S '", NORMLAB_SOURCE_DIR, "' -B '", (here / "build").string(),
                                  "' -DCMAKE_DISABLE_FIND_PACKAGE_Catch2=ON ", option, " > '", log, "' 2>&1");
  const int status = std::system(command.c_str());
  return {status, read_file(log)};
}

bool has_cmake() { return std::system("cmake --version > /dev/null 2>&1") == 0; }

}  // namespace

TEST_CASE("without Catch2 configuring says which versions serve, and the tool alone needs none") {
  NORMLAB_SKIP_UNLESS(has_cmake(), "cmake is not on the path");
  const ScratchDirectory with_tests, tool;
  const auto refused = configure(with_tests, "-DNORMLAB_TESTS=ON");
  CHECK(refused.first != 0);
  CHECK(refused.second.find("The tests need Catch2, 2.13 or 3") != std::string::npos);
  CHECK(refused.second.find("-DNORMLAB_TESTS=OFF") != std::string::npos);
  const auto accepted = configure(tool, "-DNORMLAB_TESTS=OFF");
  INFO(accepted.second);
  REQUIRE(accepted.first == 0);

  // The flags as the compiler gets them: nothing for this machine alone, and wide instructions where they are
  // dispatched only.
  const Json commands = parse_json(read_file(tool / "build/compile_commands.json"), "compile_commands.json");
  int wide = 0;
  for (const Json& entry : commands.items) {
    const std::string file = std::filesystem::path(entry.find("file")->string).filename().string();
    const std::string& command = entry.find("command")->string;
    INFO(command);
    for (const char* flag : {"-march=", "-mtune=", "-ffast-math", "-Ofast", "-ffinite-math", "-funsafe-math"})
      CHECK(command.find(flag) == std::string::npos);
    CHECK(command.find("-ffp-contract=off") != std::string::npos);
    const bool uses_wide = command.find(" -mavx") != std::string::npos || command.find(" -mfma") != std::string::npos;
    if (uses_wide) CHECK((file == "avx2.cpp" || file == "avx512.cpp" || file == "avx512_bf16.cpp"));
    wide += uses_wide ? 1 : 0;
  }
  CHECK(commands.items.size() > 50);
#if defined(__x86_64__)
  CHECK(wide >= 2);
#endif
}
