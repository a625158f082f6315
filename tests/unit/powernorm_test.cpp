// PowerNorm over several passes, against numbers worked out by hand from the formulas in its file.
#include <cmath>

#include "unit/normed.h"

using namespace normlab;

namespace {

using Numbers = std::vector<double>;

// PowerNorm of two positions of two channels, pass after pass, decay 0.9 and eps 0.
class TwoChannels {
 public:
  explicit TwoChannels(const Options& options) : graph_(store_, {1, 2}) {
    NormChoice choice;
    choice.def = find_norm("powernorm");
    choice.options = options;
    const Var y = apply_norm(graph_, choice, "norm", affine(graph_.param(vector_of("x", {1, 2, 2})), 1, 0));
    graph_.keep(y);
    graph_.set_loss(graph_.append(std::make_unique<Weighted>(std::vector<real>{1, 0, 0, 0}), {y}, {1}));
    graph_.plan(Plan::training);
    store_.allocate();
    store_.initialize(1);
    graph_.allocate_shared();
    graph_.prepare();
    y_ = y;
  }
  // Forward, and backward of the first element of the result.
  Numbers operator()(const std::vector<real>& x, Pass pass = {}, std::vector<int32_t> targets = {0, 0}) {
    std::copy(x.begin(), x.end(), store_.value(store_.find("x")));
    pass.targets = targets.data();
    Workspace work(graph_);
    work.poison();
    graph_.forward(work, pass);
    const ConstView y = graph_.value(work, y_);
    const Numbers out = {y.row(0)[0], y.row(0)[1], y.row(1)[0], y.row(1)[1]};
    graph_.backward(work, pass);
    const real* g = work.gradient(store_.find("x"));
    dx = {g[0], g[1], g[2], g[3]};
    return out;
  }
  Numbers state(const std::string& name) {
    const real* v = store_.value(store_.find("norm." + name));
    return {v[0], v[1]};
  }
  Numbers dx;

 private:
  ParamStore store_;
  Graph graph_;
  Var y_;
};

// Both rows have the root mean square 5: (0.2, 1.4) and (1, 1), mean squares 0.52 and 1.48 per channel.
const std::vector<real> kFirst = {1, 7, 5, 5};
const std::vector<real> kSecond = {7, 1, 5, 5};  // the channels of the first row exchanged: 1.48 and 0.52

}  // namespace

TEST_CASE("PowerNorm divides by its running statistic once warm, and its backward by the batch's") {
  TwoChannels norm({{"warmup", 1}});
  // The first pass: z = x / sqrt(psi2); phi becomes psi2; e becomes half of z, for dz = 1 there.
  check_near(norm(kFirst), {0.277350, 1.150793, 1.386750, 0.821995}, 2e-6);
  check_near(norm.state("running_phi"), {0.52, 1.48}, 1e-6);
  check_near(norm.state("running_gz"), {0.138675, 0}, 1e-6);
  // The second: z = x / sqrt(phi) = x / (0.721110, 1.216553), phi = 0.9 phi + 0.1 psi2.
  check_near(norm(kSecond), {1.941451, 0.164399, 1.386750, 0.821995}, 2e-6);
  check_near(norm.state("running_phi"), {0.616, 1.384}, 1e-6);
  // u = (1 - 0.0138675 z, -0.0138675 z) = (0.973077, -0.0192308) in the first channel, divided by sqrt(1.48): 0.799864
  // and -0.0158076; then back through the division of each row by 5: (u - y mean(u y)) / 5.
  check_near(norm.dx, {0.0031994, -0.0223962, -0.00158076, 0.00158076}, 1e-6);
  check_near(norm.state("running_gz"), {0.138675 + 0.931256, 0}, 1e-5);
  // At evaluation phi stands for all, and nothing moves.
  Pass evaluation;
  evaluation.training = false;
  check_near(norm(kFirst, evaluation), {0.2 / 0.784857, 1.4 / 1.176435, 1 / 0.784857, 1 / 1.176435}, 2e-6);
  check_near(norm.state("running_phi"), {0.616, 1.384}, 1e-6);
  check_near(norm.state("running_gz"), {1.069931, 0}, 1e-5);
}

TEST_CASE("PowerNorm computed again gives the same bits and moves nothing") {
  TwoChannels norm({{"warmup", 1}});
  norm(kFirst);
  const Numbers y = norm(kSecond), phi = norm.state("running_phi"), gz = norm.state("running_gz");
  Pass again;
  again.again = true;
  CHECK(norm(kSecond, again) == y);
  CHECK(norm.state("running_phi") == phi);
  CHECK(norm.state("running_gz") == gz);
}

TEST_CASE("PowerNorm's first running value is the mean of its warmup") {
  TwoChannels norm({{"warmup", 2}});
  norm(kFirst);
  norm(kSecond);
  // 0.9 (0.52 + 1.48) / 2 + 0.1 psi2
  check_near(norm.state("running_phi"), {0.9 + 0.148, 0.9 + 0.052}, 1e-6);
}

TEST_CASE("PowerNorm leaves padding out of its statistics") {
  TwoChannels norm({});
  check_near(norm(kFirst, {}, {0, -1}), {1, 1, 5, 1 / 1.4}, 2e-6);
  check_near(norm.state("running_phi"), {0.04, 1.96}, 1e-6);
  check_near(norm.state("running_gz"), {1, 0}, 1e-6);
  TwoChannels all({{"masked", 0}});
  all(kFirst, {}, {0, -1});
  check_near(all.state("running_phi"), {0.52, 1.48}, 1e-6);
}

TEST_CASE("PN-V has the true derivative of the batch's statistic") {
  TwoChannels norm({{"running", 0}});
  check_near(norm(kFirst), {0.277350, 1.150793, 1.386750, 0.821995}, 2e-6);
  // (dz - z mean(dz z)) / sqrt(0.52) = (1 - 0.0384615, -0.1923077) / 0.721110 = (1.333414, -0.266683); mean = 0.138675
  // then (u - y mean(u y)) / 5: rows (0.2, 1.4) with mean 0.1333414 and (1, 1) with -0.133341.
  check_near(norm.dx, {0.2613491, -0.0373356, -0.0266683, 0.0266683}, 2e-6);
}
