// What `normlab invariance` measures, against what the formulas say and the norms declare.
#include <algorithm>

#include "../process.h"
#include "lab/invariance.h"
#include "report/reach_chart.h"

using namespace normlab;

namespace {

InvarianceRow measured(const char* norm) { return measure_invariance(*find_norm(norm)); }

// Outputs that changed, in the first sequence and in the others.
std::pair<int, int> heard(const InvarianceRow& row) {
  const auto middle = row.reach.begin() + kInvarianceTime * kInvarianceWidth;
  return {static_cast<int>(std::count(row.reach.begin(), middle, 1)),
          static_cast<int>(std::count(middle, row.reach.end(), 1))};
}

}  // namespace

TEST_CASE("every norm is measured to have the invariances and the reach that it declares") {
  for (const NormDef* norm : all_norms()) {
    const InvarianceRow row = measure_invariance(*norm);
    INFO(row.norm << ": shift " << row.shift << ", scale " << row.scale);
    CHECK((row.shift < 1e-3) == norm->shift_invariant);
    CHECK((row.scale < 1e-2) == norm->scale_invariant);
    CHECK((row.order > 1e-2) == norm->channels_ordered);  // else sums in another order: rounding
    CHECK((row.order < 1e-5) != norm->channels_ordered);
    CHECK(row.batch == (norm->reach == Reach::batch));
    CHECK(row.future == (norm->reach != Reach::token));
    CHECK(std::count(row.reach.begin(), row.reach.end(), 2) == 1);
  }
}

TEST_CASE("norms listen to the values over which their statistics run: two sequences of 6 positions, 16 channels") {
  CHECK(heard(measured("layernorm")) == std::pair(15, 0));       // the token's other channels
  CHECK(heard(measured("groupnorm")) == std::pair(3, 0));        // those of its group of 4
  CHECK(heard(measured("batchnorm")) == std::pair(5, 6));        // the channel at all positions
  CHECK(heard(measured("instancenorm")) == std::pair(5, 0));     // of this sequence
  CHECK(heard(measured("groupnorm_time")) == std::pair(23, 0));  // a group's channels at all positions of it
  CHECK(heard(measured("dyt")) == std::pair(0, 0));
}

TEST_CASE("a gain and a bias per channel give back what BatchNorm took, and cannot give back what LayerNorm took") {
  CHECK(measured("none").unrestored < 1e-6);
  CHECK(measured("batchnorm").unrestored < 1e-6);
  CHECK(measured("layernorm").unrestored > 0.1);
}

TEST_CASE("only running statistics make evaluation differ from training") {
  for (const NormDef* norm : all_norms()) {
    const InvarianceRow row = measure_invariance(*norm);
    INFO(row.norm);
    if (norm->name == "batchnorm") CHECK(row.evaluation > 0.1);
    if (norm->reach != Reach::batch) CHECK(row.evaluation == 0);
  }
}

TEST_CASE("normlab invariance prints and writes one row per norm, and draws each") {
  const ScratchDirectory here;
  const ProcessResult r =
      run_tool({"invariance", "--csv", (here / "i.csv").string(), "--svg", (here / "i.svg").string()});
  CHECK(r.code == 0);
  const std::string csv = read_file(here / "i.csv"), svg = read_file(here / "i.svg");
  CHECK(csv.rfind("norm,shift,scale,order,evaluation,unrestored,batch,future\nlayernorm,", 0) == 0);
  CHECK(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')) == all_norms().size() + 1);
  for (const NormDef* norm : all_norms())
    CHECK(svg.find(">" + std::string(norm->name) + "</text>") != std::string::npos);
}
