// Options of a quiet run below a scratch directory that stops after some steps, as if by a signal.
#pragma once

#include "lab/run.h"
#include "process.h"

inline int stops_after = 0;  // steps until the next stop; 0 = never

inline normlab::RunOptions stopping_after(const ScratchDirectory& here, bool resume, int stop = 0) {
  stops_after = stop;
  normlab::RunOptions options;
  options.out = here.path();
  options.resume = resume;
  options.quiet = true;
  options.stop = [] { return stops_after > 0 && --stops_after == 0; };
  return options;
}
