// Every placement by name, one line each.
#include "core/text.h"
#include "model/records.h"
#include "normlab/error.h"
#include "normlab/placement.h"

#define NORMLAB_PLACEMENTS(X) \
  X(post)                     \
  X(pre)                      \
  X(deepnorm)                 \
  X(sandwich)                 \
  X(residual)                 \
  X(subln)                    \
  X(reordered)                \
  X(lns)                      \
  X(scaled_pre)               \
  X(layerscale)               \
  X(rezero)                   \
  X(skipinit)                 \
  X(normformer)               \
  X(keel)                     \
  X(b2t)                      \
  X(mixln)                    \
  X(hybridnorm)               \
  X(tfixup)                   \
  X(admin)                    \
  X(parallel)                 \
  X(no_placement)             \
  /* a new one is a line above this */

namespace normlab {

#define X(placement) extern const Placement placement;
NORMLAB_PLACEMENTS(X)
#undef X

static std::vector<const Placement*>& registry() {
  static std::vector<const Placement*> placements = {
#define X(placement) &placement,
      NORMLAB_PLACEMENTS(X)
#undef X
  };
  return placements;
}

const std::vector<const Placement*>& all_placements() { return registry(); }

void register_placement(const Placement& placement) {
  const std::string who = check_record("placement", placement.name, placement.formula, placement.options, {});
  if (placement.sublayer == nullptr) throw RecordError(str(who, " has no function sublayer"));
  if (find_placement(placement.name) != nullptr) throw RecordError(str(who, ": there is one of that name already"));
  registry().push_back(&placement);
}

const Placement* find_placement(std::string_view name) {
  for (const Placement* placement : all_placements()) {
    if (placement->name == name) return placement;
  }
  return nullptr;
}

}  // namespace normlab
