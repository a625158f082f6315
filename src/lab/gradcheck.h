// Every backward against finite differences, with random cotangents. Needs real = double: in float the differences are
// noise.
//
// A case records a small graph; the scalar that is differentiated is the sum of its result under fixed random weights.
// Each case is tried
//   alone   its inputs read by nothing else, straight from parameters;
//   shared  its inputs produced by an op (padded rows) and read by a second op too, so that backward must add, not
//   overwrite; frozen  each input in turn without a gradient: the other gradients stay the same bits, the frozen one is
//   not written;
// in memory filled with NaN before each pass, and once more on top of older gradients (accumulation over
// micro-batches).
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "normlab/norm.h"
#include "normlab/placement.h"

namespace normlab {

// Largest relative error of a right backward. The differences are of fourth order, (8 (f(h) - f(-h)) - (f(2h) -
// f(-2h))) / 12 h, with errors of 1e-9 and less on smooth functions of size 1.
inline constexpr double kGradcheckTolerance = 1e-6;

// What a case asks for while it records.
class CaseInputs {
 public:
  // From a standard normal draw to the value of one element.
  using Fill = std::function<double(double)>;

  explicit CaseInputs(Graph& graph_, bool shared = false, int frozen = -1)
      : graph(graph_), shared_(shared), frozen_(frozen) {}
  Graph& graph;
  Var tensor(const std::string& name, const Shape& shape, Fill fill = {});  // an activation
  Var weight(const std::string& name, const Shape& shape,
             Fill fill = {});  // read from parameter memory: matrices, tables, vectors
  Var state(const std::string& name, const Shape& shape, double initial);  // running statistics
  const std::vector<Var>& asked() const { return asked_; }
  double value(const std::string& name, double normal) const;
  bool owns(const std::string& name) const { return fills_.count(name) > 0; }

 private:
  bool shared_;
  int frozen_;
  std::vector<Var> asked_;
  std::map<std::string, Fill> fills_;
};

struct GradcheckCase {
  std::string section = {};               // "op", "norm" or "model"
  std::string name = {};                  // of an op: Op::name(), a colon, what is special
  std::string norm = {}, placement = {};  // what the case is of; "" = none
  Graph::Sizes sizes = {2, 5};
  int64_t vocabulary = 7;
  bool training = true;
  bool every_element = true;  // false: three random directions per parameter
  enum class Ignored {
    none,
    some,
    sequence
  } ignored = Ignored::none;  // targets of -1: none, every third, the whole first sequence too
  std::string rough = {};     // why there is no derivative here; then backward only has to be finite
  std::function<Var(CaseInputs&)> record = {};
};

struct GradcheckRow {
  std::string section, name, rough;
  double error = 0;   // worst relative error; infinite where a number is not finite or memory was misused
  std::string where;  // what is worst: parameter, element, both numbers
  std::set<std::string, std::less<>> ops = {};  // names of the ops in the case's graph
  std::map<std::string, bool> gradients = {};   // owner and parameter -> whether its gradient is other than 0
  bool passed() const { return rough.empty() ? error <= kGradcheckTolerance : error < 1e300; }
};

GradcheckRow check_gradient(const GradcheckCase& c);

// One row per case. `complete`, for lists that hold all cases: two rows more, which fail where an op of a norm or a
// model has no case of its own, and where a parameter has no gradient in any case of its owner.
std::vector<GradcheckRow> run_gradcheck(const std::vector<GradcheckCase>& cases, bool complete);

// Everything registered: ops, all norms, all placements, all options of a model.
std::vector<GradcheckCase> gradcheck_cases();
std::vector<GradcheckCase> op_cases();                      // gradcheck_ops.cpp
std::vector<GradcheckCase> norm_cases(const NormDef& def);  // gradcheck_cases.cpp, as the rest
std::vector<GradcheckCase> model_cases();

// `def` with its own eps, integer options (groups) set to `integer` or the nearest they allow.
NormChoice norm_choice(const NormDef& def, double integer);

struct ModelConfig;
// Two layers of width 16 with everything on, for context 6 and 7 tokens: small enough to try every combination.
ModelConfig small_model(const NormDef& norm, const Placement& placement);

}  // namespace normlab
