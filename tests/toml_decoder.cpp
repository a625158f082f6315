// A decoder for the public toml-test suite: TOML on stdin, its tagged JSON on stdout; exit code 1 and a message where
// refused.
#include <cstdio>
#include <exception>
#include <iostream>
#include <iterator>
#include <string>

#include "toml_tagged.h"

int main() {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  try {
    std::puts(normlab::dump_json(toml_tagged(normlab::parse_toml(text, "stdin")), 2).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
