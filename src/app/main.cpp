#include "app/cli.h"

int main(int argc, char** argv) { return normlab::main_with(std::vector<std::string>(argv + 1, argv + argc)); }
