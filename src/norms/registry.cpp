// Every norm by name, one line each. The list is explicit: objects that register themselves are dropped by static
// linking.
#include "normlab/norm.h"

#define NORMLAB_NORMS(X) \
  X(layernorm)           \
  X(rmsnorm)             \
  X(batchnorm)           \
  X(groupnorm)           \
  X(instancenorm)        \
  X(prmsnorm)            \
  X(crmsnorm)            \
  X(scalenorm)           \
  X(l2norm)              \
  X(groupnorm_time)      \
  X(adanorm)             \
  X(dyt)                 \
  X(derf)                \
  X(powernorm)           \
  X(no_norm)             \
  /* a new one is a line above this */

namespace normlab {

#define X(norm) extern const NormDef norm;
NORMLAB_NORMS(X)
#undef X

const std::vector<const NormDef*>& all_norms() {
  static const std::vector<const NormDef*> norms = {
#define X(norm) &norm,
      NORMLAB_NORMS(X)
#undef X
  };
  return norms;
}

const NormDef* find_norm(std::string_view name) {
  for (const NormDef* norm : all_norms()) {
    if (norm->name == name) return norm;
  }
  return nullptr;
}

}  // namespace normlab
