#include <unistd.h>

#include <fstream>
#include <limits>
#include <string>

#include "core/text.h"
#include "lab/run.h"
#include "normlab/error.h"

namespace normlab {

namespace {

// Bytes that can be had without pushing others out; all the machine has where the system does not say.
double available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    double kib = 0;
    file >> kib >> unit;
    if (key == "MemAvailable:") return kib * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

void check_memory(const Cost& cost) {
  const double have = available_memory();
  if (cost.memory > have) {
    throw Error(str("this model needs ", bytes(cost.memory), " of memory; this machine has ", bytes(have), " free",
                    ". Smaller batch, context, width or layers, or a larger train.accumulate, need less"));
  }
}

}  // namespace normlab
