// Every init by name, one line each.
#include "normlab/init.h"

#define NORMLAB_INITS(X) \
  X(auto_init)           \
  X(xavier_init)         \
  X(xavier_uniform_init) \
  X(gpt2_init)           \
  X(normal_init)         \
  X(small_init)          \
  X(mitchell_init)       \
  X(torch_init)          \
  X(ds_init)             \
  X(deepnorm_init)       \
  X(subln_init)          \
  X(tfixup_init)         \
  /* a new one is a line above this */

namespace normlab {

#define X(init) extern const InitDef init;
NORMLAB_INITS(X)
#undef X

const std::vector<const InitDef*>& all_inits() {
  static const std::vector<const InitDef*> inits = {
#define X(init) &init,
      NORMLAB_INITS(X)
#undef X
  };
  return inits;
}

const InitDef* find_init(std::string_view name) {
  for (const InitDef* init : all_inits()) {
    if (init->name == name) return init;
  }
  return nullptr;
}

}  // namespace normlab
