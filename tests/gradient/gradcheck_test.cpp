#include "lab/gradcheck.h"
#include <limits>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/files.h"
#include "core/text.h"
#include "normlab/ops.h"
#include "test.h"

namespace normlab {
namespace {

// All cases, run once for all tests of this file.
const std::vector<GradcheckRow>& report() {
  static const std::vector<GradcheckRow> rows = run_gradcheck(gradcheck_cases(), true);
  return rows;
}

void require_all(std::string_view section, std::size_t at_least) {
  std::size_t seen = 0;
  for (const GradcheckRow& row : report()) {
    if (row.section != section) continue;
    ++seen;
    INFO(row.section << " " << row.name << ": " << row.where);
    CHECK(row.passed());
  }
  REQUIRE(seen >= at_least);
}

TEST_CASE("The backward of every op agrees with finite differences to 1e-6") { require_all("op", 70); }

TEST_CASE("The backward of every norm agrees with finite differences to 1e-6 on plain and on extreme rows") {
  require_all("norm", 15 * all_norms().size());
}

TEST_CASE(
    "The loss of every placement with every norm, and of every model option, agrees with finite differences to 1e-6") {
  require_all("model", all_placements().size() * all_norms().size());
}

TEST_CASE("Every op has a gradient check of its own and every parameter a gradient somewhere") {
  require_all("all", 2);
}

TEST_CASE("Without the cases of one op the gradient check fails and names the op") {
  std::vector<GradcheckCase> cases = op_cases();
  std::erase_if(cases, [](const GradcheckCase& c) { return c.name.rfind("rope:", 0) == 0; });
  const std::vector<GradcheckCase> models = model_cases();
  cases.push_back(
      *std::find_if(models.begin(), models.end(), [](const GradcheckCase& c) { return c.name == "position rope"; }));
  const std::vector<GradcheckRow> rows = run_gradcheck(cases, true);
  const GradcheckRow& row = rows[rows.size() - 2];
  REQUIRE_FALSE(row.passed());
  REQUIRE(row.where == "rope");
}

TEST_CASE("A parameter without any gradient fails the gradient check") {
  GradcheckCase c{.section = "op", .name = "affine: times 0"};
  c.record = [](CaseInputs& in) { return affine(in.tensor("x", {2, 5, 3}), 0, 1); };
  const std::vector<GradcheckRow> rows = run_gradcheck({c}, true);
  REQUIRE(rows[0].passed());
  REQUIRE_FALSE(rows[2].passed());
  REQUIRE(rows[2].where == "affine: x");
}

// y = x - mean(x) + z of each row, with a backward that is wrong on demand.
enum class Fault { none, factor, drops_term, overwrites, reads_garbage, ignores_wants, not_finite };

class Faulty final : public Op {
 public:
  explicit Faulty(Fault fault) : fault_(fault) {}
  std::string_view name() const override { return "faulty"; }
  Needs needs() const override { return Needs::nothing; }
  void forward(const OpContext& c) const override {
    const ConstView x = c.in(0), z = c.in(1);
    for (int64_t r = 0; r < x.rows; ++r) {
      const real mean = mean_of(x, r);
      for (int64_t j = 0; j < x.cols; ++j) c.out().row(r)[j] = x.row(r)[j] - mean + z.row(r)[j];
    }
  }
  void backward(const OpContext& c) const override {
    const ConstView dy = c.grad_out();
    for (const int i : {0, 1}) {
      if (!c.wants(i) && fault_ != Fault::ignores_wants) continue;
      const Gradient to = c.grad(i);
      const bool adds = fault_ == Fault::reads_garbage || (to.accumulate && fault_ != Fault::overwrites);
      for (int64_t r = 0; r < dy.rows; ++r) {
        const real mean = i == 0 && fault_ != Fault::drops_term ? mean_of(dy, r) : 0;
        for (int64_t j = 0; j < dy.cols; ++j) {
          real value = dy.row(r)[j] - mean;
          if (fault_ == Fault::factor) value *= real(1.001);
          if (fault_ == Fault::not_finite && r == 1) value /= real(0);
          to.view.row(r)[j] = adds ? to.view.row(r)[j] + value : value;
        }
      }
    }
  }

 private:
  static real mean_of(const ConstView& x, int64_t r) {
    real sum = 0;
    for (int64_t j = 0; j < x.cols; ++j) sum += x.row(r)[j];
    return sum / static_cast<real>(x.cols);
  }
  Fault fault_;
};

GradcheckRow check_faulty(Fault fault) {
  GradcheckCase c{.section = "op", .name = "faulty:"};
  c.record = [fault](CaseInputs& in) {
    const Var x = in.tensor("x", {2, 5, 4}), z = in.tensor("z", {2, 5, 4});
    return in.graph.append(std::make_unique<Faulty>(fault), {x, z}, x.shape());
  };
  return check_gradient(c);
}

TEST_CASE("The gradient check passes a right backward and catches each kind of wrong one") {
  REQUIRE(check_faulty(Fault::none).error < 1e-9);
  for (const Fault fault : {Fault::factor, Fault::drops_term, Fault::overwrites, Fault::reads_garbage,
                            Fault::ignores_wants, Fault::not_finite}) {
    const GradcheckRow row = check_faulty(fault);
    INFO(static_cast<int>(fault) << ": " << row.where);
    CHECK_FALSE(row.passed());
    CHECK(row.error > 0.99e-3);  // the factor is 1.001
    CHECK_FALSE(row.where.empty());
  }
}

// max(x, 0): a kink at a row of zeros. With `undefined`, infinity x: not a number there.
NormDef kinked(bool undefined) {
  NormDef def;
  def.name = "kinked";
  def.define = [](const NormSite&, Var x) { return activation(x, Activation::relu); };
  if (undefined)
    def.define = [](const NormSite&, Var x) { return affine(x, std::numeric_limits<double>::infinity(), 0); };
  return def;
}

GradcheckRow check_zero_row(const NormDef& def) {
  for (const GradcheckCase& c : norm_cases(def)) {
    if (c.name == "kinked: zero") return check_gradient(c);
  }
  throw Error("no case for a row of zeros");
}

TEST_CASE("An eps outside the root, as small as 1e-8, is smooth enough at a row of zeros") {
  // x / (rms(x) + eps) has the derivative 1 / eps there; the README's own example of a new norm.
  NormDef outside = kinked(false);
  outside.default_eps = 1e-8;
  outside.define = [](const NormSite& s, Var x) {
    return divide(x, affine(rms(x, 0, {}), 1, s.eps()), Over::channels);
  };
  REQUIRE(check_zero_row(outside).passed());
}

TEST_CASE("A kink of a norm must be declared, and even then its backward must be finite") {
  NormDef smooth_elsewhere = kinked(false), undefined = kinked(true);
  REQUIRE_FALSE(check_zero_row(smooth_elsewhere).passed());
  smooth_elsewhere.rough = undefined.rough = {"zero"};
  REQUIRE(check_zero_row(smooth_elsewhere).passed());
  REQUIRE_FALSE(check_zero_row(undefined).passed());
}

TEST_CASE("A backward that leaves out a part of the derivative by design fails the gradient check with its switch on") {
  for (const NormDef* def : all_norms()) {
    if (def->detaching.empty()) continue;
    NormDef hidden = *def;
    hidden.detaching = "";
    const GradcheckRow row = check_gradient(norm_cases(hidden).front());
    INFO(row.name << ": " << row.error);
    CHECK(row.error > 1e-3);
  }
}

TEST_CASE("A kink declared for a row that the check does not try is an error") {
  NormDef misspelt = kinked(false);
  misspelt.rough = {"zeros"};
  REQUIRE_THROWS_AS(norm_cases(misspelt), RecordError);
}

struct Ran {
  int code;
  std::string out;
};

Ran run_tool(const std::string& arguments) {
  const auto file =
      std::filesystem::temp_directory_path() / str("normlab-gradcheck-", static_cast<int64_t>(std::rand()), ".txt");
  const int status = std::system(str("'", NORMLAB_BINARY, "' ", arguments, " > '", file.string(), "' 2>&1").c_str());
  Ran ran{WEXITSTATUS(status), read_file(file)};
  std::filesystem::remove(file);
  return ran;
}

TEST_CASE("normlab gradcheck runs the double program beside it and prints one line per case", "[threads]") {
  const Ran ran = run_tool("gradcheck --norm rmsnorm --placement post");
  INFO(ran.out);
  REQUIRE(ran.code == 0);
  REQUIRE(ran.out.find("post x rmsnorm") != std::string::npos);
  REQUIRE(ran.out.find("post x layernorm") == std::string::npos);
  REQUIRE(ran.out.find(" 0 failed; worst relative error ") != std::string::npos);
}

TEST_CASE("normlab gradcheck refuses a norm or placement that does not exist and names the nearest") {
  const Ran norm = run_tool("gradcheck --norm rmsnrm"), placement = run_tool("gradcheck --placement pots");
  REQUIRE(norm.code == 2);
  REQUIRE(norm.out.find("did you mean 'rmsnorm'") != std::string::npos);
  REQUIRE(placement.code == 2);
  REQUIRE(placement.out.find("did you mean 'post'") != std::string::npos);
}

}  // namespace
}  // namespace normlab
