// Gains and the learned vectors of placements, under every norm and placement: each is used, once.
#include <cmath>
#include <map>

#include "core/parallel.h"
#include "core/text.h"
#include "lab/gradcheck_recording.h"
#include "test.h"

namespace normlab {
namespace {

bool is_gain(const ParamSpec& spec) {
  return spec.role == Role::vector && spec.trainable && !spec.name.ends_with(".bias");
}

TEST_CASE("Every element of every gain has a gradient and moves the loss, under every norm and placement") {
  set_threads(1);  // for so little work, waiting for each other takes threads longer than the work
  std::map<std::string, std::size_t> sites;  // of norms with gains, by placement
  std::size_t combinations = 0;
  for (const GradcheckCase& c : model_cases()) {
    if (c.name != str(c.placement, " x ", c.norm)) continue;
    ++combinations;
    Recording r(c, false);
    const std::vector<real> gradients = r.gradients(0, false);
    std::size_t gains = 0;
    double largest = 0;
    for (const real g : gradients) largest = std::max(largest, std::abs(g));
    for (int p = 0; p < r.store().count(); ++p) {
      const ParamSpec& spec = r.store().spec(p);
      if (!is_gain(spec)) continue;
      INFO(c.name << ": " << spec.name);
      gains += spec.name.find("norm") != std::string::npos && spec.name.ends_with(".weight") ? 1u : 0u;
      const int64_t first = r.store().offset(p);
      std::vector<double> uphill;
      for (int64_t e = 0; e < spec.shape.count(); ++e) {
        const real g = gradients[static_cast<std::size_t>(first + e)];
        CHECK(std::abs(g) > 1e-9 * largest);
        uphill.push_back(g > 0 ? 1 : -1);
      }
      CHECK(r.difference(first, uphill, 1e-4) > 1e-9 * largest);
    }
    if (gains == 0) continue;  // a norm or a placement without any
    INFO(c.name);
    CHECK(sites.emplace(c.placement, gains).first->second == gains);
  }
  CHECK(combinations == all_placements().size() * all_norms().size());
  CHECK(sites.size() >= all_placements().size() - 4);
}

}  // namespace
}  // namespace normlab
