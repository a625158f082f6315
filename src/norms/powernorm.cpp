// PowerNorm, Shen et al. 2020, in the form of the authors' code (sIncerass/powernorm, mask_powernorm.py). Per
// channel over all positions of all sequences, without centring: psi2 is the batch's mean square, phi its running
// value.
//   forward:  z = x / sqrt(psi2 + eps) in the first `warmup` passes, then x / sqrt(phi + eps) with phi from before
//   phi:      in the warmup first the mean of all so far, phi (t - 1) / t + psi2 / t; then always a phi + (1 - a) psi2
//   backward: u = dz - (1 - a) e z,  e <- e + mean(u z),  dx = u / sqrt(psi2 + eps);  a = decay
// That backward is no derivative of the forward: e, a running value, stands for what the batch's own statistic would
// give. With running = false it is PN-V of the same paper: psi2 always, and the true derivative.
// Each token is divided by the root mean square of its channels, in groups, before (GroupScaling1D of that code).
#include <cmath>

#include "normlab/norm.h"
#include "ops/rows.h"

namespace normlab {

namespace {

constexpr int64_t kColumns = 64;  // that one thread treats

struct PowerRules {
  double eps, decay, warmup;
  bool running, masked;
};

// Inputs: x (B, T, C); states: phi and phi before the last pass (C), e (C), passes so far (1).
class Power final : public Op {
 public:
  Power(const PowerRules& rules, int64_t channels) : rules_(rules), channels_(channels) {}
  std::string_view name() const override { return "powernorm"; }
  Needs needs() const override { return Needs::output; }
  int64_t saved() const override { return channels_; }  // sqrt(psi2 + eps)

  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0);
    const View z = c.out();
    real &passes = *c.state(4).data, *root = c.saved();
    const bool moves = c.pass.training && !c.pass.again;
    if (moves) passes += real(1);
    const auto t = std::max(1.0, static_cast<double>(passes));
    const bool of_batch = c.pass.training && (!rules_.running || t <= rules_.warmup);
    const int64_t valid = valid_rows(c, x.rows);
    for_columns([&](int64_t first, int64_t n) {
      double square[kColumns] = {};
      real divisor[kColumns] = {};
      for (int64_t r = 0; r < x.rows; ++r)
        for (int64_t j = 0; j < n && counts(c, r); ++j) square[j] += product(x.row(r)[first + j], x.row(r)[first + j]);
      for (int64_t j = 0; j < n; ++j) {
        real &phi = c.state(1).data[first + j], &before = c.state(2).data[first + j];
        const double psi2 = valid > 0 ? square[j] / static_cast<double>(valid) : static_cast<double>(phi);
        if (moves) {
          before = phi;
          auto next = static_cast<double>(phi);
          if (t <= rules_.warmup) next += (psi2 - next) / t;
          phi = static_cast<real>(rules_.decay * next + (1 - rules_.decay) * psi2);
        }
        const double used = of_batch ? psi2 : static_cast<double>(c.pass.training ? before : phi);
        divisor[j] = static_cast<real>(std::sqrt(used + rules_.eps));
        root[first + j] = c.pass.training ? static_cast<real>(std::sqrt(psi2 + rules_.eps)) : divisor[j];
      }
      for (int64_t r = 0; r < x.rows; ++r)
        for (int64_t j = 0; j < n; ++j) z.row(r)[first + j] = quotient(x.row(r)[first + j], divisor[j]);
    });
  }

  void backward(const OpContext& c) const override {
    const ConstView dz = c.grad_out(), z = constant(c.out());
    const Gradient dx = c.grad(0);
    const double valid = std::max(1.0, static_cast<double>(valid_rows(c, z.rows)));
    for_columns([&](int64_t first, int64_t n) {
      double pull[kColumns] = {};  // times z: what the statistic takes from the gradient
      if (c.pass.training && !rules_.running) {
        for (int64_t r = 0; r < z.rows; ++r)
          for (int64_t j = 0; j < n; ++j) pull[j] += product(dz.row(r)[first + j], z.row(r)[first + j]) / valid;
      } else if (c.pass.training) {
        for (int64_t j = 0; j < n; ++j) pull[j] = (1 - rules_.decay) * static_cast<double>(c.state(3).data[first + j]);
      }
      double moved[kColumns] = {};
      for (int64_t r = 0; r < z.rows; ++r) {
        const bool counted = counts(c, r), pulled = counted || rules_.running;
        for (int64_t j = 0; j < n; ++j) {
          const auto zj = static_cast<double>(z.row(r)[first + j]);
          const double u = static_cast<double>(dz.row(r)[first + j]) - (pulled ? pull[j] * zj : 0);
          if (counted) moved[j] += u * zj / valid;
          real& to = dx.view.row(r)[first + j];
          to = (dx.accumulate ? to : real(0)) + quotient(static_cast<real>(u), c.saved()[first + j]);
        }
      }
      for (int64_t j = 0; j < n && c.pass.training && !c.pass.again; ++j) {
        real& e = c.state(3).data[first + j];
        e = static_cast<real>(static_cast<double>(e) + moved[j]);
      }
    });
  }

 private:
  static double product(real x, real y) { return static_cast<double>(x) * static_cast<double>(y); }
  static real quotient(real x, real s) { return s == real(0) ? real(0) : x / s; }  // a channel of zeros with eps = 0
  bool counts(const OpContext& c, int64_t row) const { return !rules_.masked || c.pass.targets[row] >= 0; }
  int64_t valid_rows(const OpContext& c, int64_t rows) const {
    int64_t n = 0;
    for (int64_t r = 0; r < rows; ++r) n += counts(c, r) ? 1 : 0;
    return n;
  }
  template <class Body>
  void for_columns(const Body& body) const {  // body(first column, columns)
    parallel_for((channels_ + kColumns - 1) / kColumns,
                 [&](int64_t i) { body(i * kColumns, std::min(channels_ - i * kColumns, kColumns)); });
  }

  PowerRules rules_;
  int64_t channels_;
};

}  // namespace

extern const NormDef powernorm;
const NormDef powernorm = {
    .name = "powernorm",
    .formula = "g * x / sqrt(phi + eps) + b, phi the running mean of x^2 over batch and time; see its file",
    .source = "Shen et al. 2020, arXiv:2003.07845",
    .default_eps = 1e-3,
    .eps_reason =
        "it divides twice, so gradients through a row of zeros grow by 1 / eps a norm, as they do by 1 / sqrt(1e-6) in "
        "RMSNorm; with the 1e-5 of the paper's code they overflow",
    .reach = Reach::batch,
    .scale_invariant = true,
    .detaching = "running",
    .options = {{"groups", 1, 1, 1 << 20, OptionSpec::Kind::integer,
                 "groups of channels; must divide the width; 1 is all", true},
                {"decay", 0.9, 0, 1, OptionSpec::Kind::number, "of the running values, forward and backward"},
                {"warmup", 10000, 0, 1e9, OptionSpec::Kind::integer,
                 "passes whose forward uses the batch's own statistic"},
                {"running", 1, 0, 1, OptionSpec::Kind::boolean,
                 "the paper's PN; false: its PN-V, the batch's statistic and the true gradient"},
                {"masked", 1, 0, 1, OptionSpec::Kind::boolean,
                 "padding and ignored positions stay out of the statistics"}},
    .define =
        [](const NormSite& s, Var x) {
          Graph& g = s.graph();
          const Var parts = g.split(x, static_cast<int64_t>(s.option("groups")));
          const Var scaled = g.merge(divide(parts, rms(parts, s.eps(), {}), Over::channels));
          const PowerRules rules = {s.eps(), s.option("decay"), s.option("warmup"), s.option("running") != 0,
                                    s.option("masked") != 0};
          g.need_whole_batch();
          const Var phi = s.state("running_phi", 1), before = s.state("last_phi", 1), e = s.state("running_gz", 0);
          const Var passes = s.state("passes", 0, 1);
          const Var z =
              g.append(std::make_unique<Power>(rules, s.width()), {scaled, phi, before, e, passes}, x.shape());
          const Var gain = s.gain();
          return shift_channels(scale_channels(z, gain), s.bias());
        },
};

}  // namespace normlab
