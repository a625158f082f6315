// SmallInit, Nguyen & Salazar 2019: Xavier's variance of a feed-forward matrix of 4 width hidden channels,
// 2 / (width + 4 width), for attention too, whose own would be 2.5 times that. Embeddings N(0, 1 / width), as in the
// authors' code. The paper ties the head to them; one of its own counts as a matrix here.
#include "inits/gains.h"

namespace normlab {

extern const InitDef small_init;
const InitDef small_init = {
    .name = "small",
    .formula = "N(0, 2 / (5 width)); embeddings N(0, 1 / width)",
    .source = "Nguyen & Salazar 2019, arXiv:1910.05895",
    .matrix =
        [](const MatrixInfo& m) {
          return m.is_embedding() ? xavier(m) : Draw::normal(std::sqrt(2.0 / (5.0 * static_cast<double>(m.width))));
        },
};

}  // namespace normlab
