// The command line as a function, for programs that bring norms and placements of their own:
//
//   int main(int argc, char** argv) { return normlab::main_program(argc, argv, {.norms = {&mine}}); }
//
// What a program adds can be named in its configs and takes part in whatever it does, as what comes with the library:
// list, check, run, sweep, gradcheck, bench. See README, "From outside".
#pragma once

#include <vector>

#include "normlab/norm.h"
#include "normlab/placement.h"

namespace normlab {

// Records that live as long as the program, in the order in which they are to be listed.
struct Additions {
  std::vector<const NormDef*> norms = {};
  std::vector<const Placement*> placements = {};
};

// Registers the additions, then does what the words say. Returns the exit code of the program; errors, also those of
// register_norm and register_placement, are printed on stderr, one line each. Call it once.
int main_program(int argc, char** argv, const Additions& additions = {});

}  // namespace normlab
