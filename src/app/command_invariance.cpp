// normlab invariance.
#include <algorithm>

#include "app/commands.h"
#include "core/files.h"
#include "core/text.h"
#include "lab/invariance.h"
#include "normlab/error.h"
#include "report/reach_chart.h"

namespace normlab {

namespace {

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size() + 1, width), ' ');
  return text;
}

std::string percent(double share) { return str(fixed(100 * share, share < 0.1 ? 2 : 0), " %"); }

}  // namespace

int command_invariance(const Arguments& a) {
  refuse_overwriting({a.text("--csv"), a.text("--svg")}, {});
  std::string csv = kInvarianceHeader;
  std::vector<ReachGrid> reaches;
  print("norm            N(x + 3)   N(2.5 x)   N(P x)     evaluation  not restored  other sequences  the future\n");
  for (const NormDef* norm : all_norms()) {
    const InvarianceRow row = measure_invariance(*norm);
    print(padded(row.norm, 16) + padded(percent(row.shift), 11) + padded(percent(row.scale), 11) +
          padded(percent(row.order), 11) + padded(percent(row.evaluation), 12) + padded(percent(row.unrestored), 14) +
          padded(row.batch ? "heard" : "-", 17) + (row.future ? "heard" : "-") + "\n");
    csv += invariance_row(row);
    reaches.push_back({row.norm, row.reach});
  }
  if (a.has("--csv")) write_file_atomically(a.text("--csv"), csv);
  if (a.has("--svg")) {
    write_file_atomically(a.text("--svg"), reach_svg(reaches, kInvarianceBatch, kInvarianceTime, kInvarianceWidth));
  }
  return 0;
}

}  // namespace normlab
