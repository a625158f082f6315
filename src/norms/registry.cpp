// Every norm by name, one line each. The list is explicit: objects that register themselves are dropped by static
// linking.
#include <algorithm>

#include "core/text.h"
#include "model/records.h"
#include "normlab/error.h"
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

static std::vector<const NormDef*>& registry() {
  static std::vector<const NormDef*> norms = {
#define X(norm) &norm,
      NORMLAB_NORMS(X)
#undef X
  };
  return norms;
}

const std::vector<const NormDef*>& all_norms() { return registry(); }

void register_norm(const NormDef& norm) {
  const std::string who =
      check_record("norm", norm.name, norm.formula, norm.options, {"eps", "affine", "fused", "statistics"});
  if (norm.define == nullptr) throw RecordError(str(who, " has no function define"));
  if (!(norm.default_eps >= 0 && norm.default_eps <= 1e6))
    throw RecordError(str(who, ": default_eps is ", norm.default_eps, ", not a number from 0 to 1e6"));
  const auto is_switch = [&](const OptionSpec& o) {
    return o.name == norm.detaching && o.kind == OptionSpec::Kind::boolean;
  };
  if (!norm.detaching.empty() && std::none_of(norm.options.begin(), norm.options.end(), is_switch))
    throw RecordError(str(who, ": detaching names ", quote(norm.detaching), ", which is no boolean option of it"));
  if (find_norm(norm.name) != nullptr) throw RecordError(str(who, ": there is one of that name already"));
  registry().push_back(&norm);
}

const NormDef* find_norm(std::string_view name) {
  for (const NormDef* norm : all_norms()) {
    if (norm->name == name) return norm;
  }
  return nullptr;
}

}  // namespace normlab
