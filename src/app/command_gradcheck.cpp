// normlab gradcheck. Finite differences need double, so the float program NAME hands over to its twin NAME_f64, which
// knows the same norms and placements.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <unistd.h>

#include "app/commands.h"
#include "core/text.h"
#include "lab/gradcheck.h"
#include "normlab/error.h"

namespace normlab {

namespace {

int start_twin(const Arguments& a) {
  std::filesystem::path twin = std::filesystem::read_symlink("/proc/self/exe");
  twin += "_f64";
  if (!std::filesystem::exists(twin)) {
    throw IoError(str(twin.string(),
                      " is missing: gradcheck needs this program in double; build it with: cmake --build ",
                      twin.parent_path().string()));
  }
  std::vector<std::string> words = {twin.string(), "gradcheck"};
  for (const char* option : {"--norm", "--placement", "--threads"}) {
    if (a.has(option)) words.insert(words.end(), {option, a.text(option)});
  }
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  execv(pointers[0], pointers.data());
  throw IoError(str("cannot start ", twin.string()));
}

// "1.3e-09", whatever the locale.
std::string scientific(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific, 1).ptr;
  return {buffer, end};
}

// Keeps the cases whose `member` is the option's value, which must be a registered name.
template <class Registry>
void select(std::vector<GradcheckCase>& cases, const Arguments& a, std::string_view option,
            std::string GradcheckCase::*member, const Registry& registry) {
  if (!a.has(option)) return;
  const std::string wanted = a.text(option);
  std::vector<std::string> names;
  for (const auto* entry : registry) names.emplace_back(entry->name);
  if (std::find(names.begin(), names.end(), wanted) == names.end()) {
    throw UsageError(
        str(option, ": unknown name ", quote(wanted), did_you_mean(wanted, names),
            sizeof(real) == sizeof(double) ? "; is this program older than the one it belongs to? Build all" : "",
            "; expected one of: ", join(names, ", ")));
  }
  std::erase_if(cases, [&](const GradcheckCase& c) { return c.*member != wanted; });
}

}  // namespace

int command_gradcheck(const Arguments& a) {
  use_threads(a);
  std::vector<GradcheckCase> cases = gradcheck_cases();
  select(cases, a, "--norm", &GradcheckCase::norm, all_norms());
  select(cases, a, "--placement", &GradcheckCase::placement, all_placements());
  if (sizeof(real) != sizeof(double)) return start_twin(a);

  const std::vector<GradcheckRow> rows = run_gradcheck(cases, !a.has("--norm") && !a.has("--placement"));
  std::size_t width = 0, failed = 0;
  for (const GradcheckRow& row : rows) width = std::max(width, row.name.size());
  for (const GradcheckRow& row : rows) {
    std::string name = row.name, section = row.section;
    name.resize(width + 2, ' ');
    section.resize(7, ' ');
    const bool measured = row.rough.empty() || !row.passed();
    print(str(section, name, measured ? scientific(row.error) : row.rough,
              row.passed() ? "  ok\n" : str("  FAILED  ", row.where, "\n")));
    if (!row.passed()) ++failed;
  }
  const auto worst = std::max_element(rows.begin(), rows.end(),
                                      [](const GradcheckRow& x, const GradcheckRow& y) { return x.error < y.error; });
  print(str("\n", rows.size(), " cases, ", failed, " failed; worst relative error ",
            worst == rows.end() ? "0" : scientific(worst->error), " (limit ", scientific(kGradcheckTolerance),
            worst == rows.end() ? "" : str("): ", worst->section, " ", worst->name), "\n"));
  return failed > 0 ? 1 : 0;
}

}  // namespace normlab
