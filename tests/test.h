// The one place that knows which Catch2 is installed: 2.13 (Debian 12, Ubuntu 22.04) or 3.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

#include <cstdlib>
#include <filesystem>
#include <string>

// Tests that need the material beside the checkout (real text, public test suites) skip aloud where it is absent.
inline std::filesystem::path shared_folder() {
  const char* named = std::getenv("NORMLAB_SHARED");
  return named != nullptr ? named : NORMLAB_SOURCE_DIR "/../shared";
}

#define NORMLAB_SKIP_UNLESS(condition, why) \
  if (!(condition)) {                       \
    WARN("SKIPPED, not a pass: " << (why)); \
    return;                                 \
  }
