#include "normlab/main.h"

int main(int argc, char** argv) { return normlab::main_program(argc, argv); }
