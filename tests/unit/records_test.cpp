// Norms and placements from outside the library: what is refused, and what a program does with it. That they work once
// registered is tested by tests/outside, in a program of its own, since nothing leaves a registry again.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "core/text.h"
#include "normlab/error.h"
#include "test.h"
#include "train/run_config.h"

using namespace normlab;

namespace {

NormDef good_norm() {
  return {.name = "mine",
          .formula = "x",
          .source = "",
          .options = {{"share", 0.5, 0, 1, OptionSpec::Kind::number, ""}},
          .define = [](const NormSite&, Var x) { return x; }};
}

Placement good_placement() {
  return {.name = "mine", .formula = "F(x)", .source = "", .sublayer = [](Wire&, Stream s, Branch& f) {
            return Stream{f(s.x), {}};
          }};
}

template <class Register>
std::string error_of(const Register& register_it) {
  const std::size_t norms = all_norms().size(), placements = all_placements().size();
  std::string message = "no error";
  try {
    register_it();
  } catch (const RecordError& error) {
    CHECK(error.exit_code() == 2);
    message = error.what();
  }
  CHECK(all_norms().size() == norms);
  CHECK(all_placements().size() == placements);
  return message;
}

std::string norm_error(const std::function<void(NormDef&)>& spoil) {
  NormDef norm = good_norm();
  spoil(norm);
  return error_of([&] { register_norm(norm); });
}

std::string placement_error(const std::function<void(Placement&)>& spoil) {
  Placement placement = good_placement();
  spoil(placement);
  return error_of([&] { register_placement(placement); });
}

std::string option_error(const OptionSpec& option) {
  return norm_error([&](NormDef& n) { n.options = {option}; });
}

constexpr auto kNumber = OptionSpec::Kind::number;

}  // namespace

TEST_CASE("A norm that lacks something is refused by name") {
  CHECK(norm_error([](NormDef& n) { n.define = nullptr; }) == "norm 'mine' has no function define");
  CHECK(norm_error([](NormDef& n) { n.formula = ""; }) == "norm 'mine' has no formula to list");
  CHECK(norm_error([](NormDef& n) { n.name = "rmsnorm"; }) == "norm 'rmsnorm': there is one of that name already");
  CHECK(norm_error([](NormDef& n) { n.name = "none"; }) == "norm 'none': there is one of that name already");
  for (const char* name : {"", "Mine", "1norm", "my-norm", "my norm", "_mine", "mine:0-5", "m\xc3\xbcn"}) {
    CHECK(norm_error([&](NormDef& n) { n.name = name; }) ==
          str("norm ", quote(name), ": a name is lower-case letters, digits and _, first a letter"));
  }
  for (const double eps : {-1e-5, 2e6, std::nan("")}) {
    CHECK(norm_error([&](NormDef& n) { n.default_eps = eps; }) ==
          str("norm 'mine': default_eps is ", eps, ", not a number from 0 to 1e6"));
  }
  CHECK(norm_error([](NormDef& n) { n.detaching = "share"; }) ==
        "norm 'mine': detaching names 'share', which is no boolean option of it");
}

TEST_CASE("A placement that lacks something is refused by name") {
  CHECK(placement_error([](Placement& p) { p.sublayer = nullptr; }) == "placement 'mine' has no function sublayer");
  CHECK(placement_error([](Placement& p) { p.formula = ""; }) == "placement 'mine' has no formula to list");
  CHECK(placement_error([](Placement& p) { p.name = "post"; }) ==
        "placement 'post': there is one of that name already");
  CHECK(placement_error([](Placement& p) { p.name = ""; }) ==
        "placement '': a name is lower-case letters, digits and _, first a letter");
}

TEST_CASE("An option that no config could set is refused") {
  const double inf = INFINITY;
  const std::string of_a = "norm 'mine', option 'a': ";
  CHECK(option_error({"a", 2, 0, 1, kNumber, ""}) == of_a + "its default 2 is outside its range from 0 to 1");
  CHECK(option_error({"a", 0, 1, -inf, kNumber, ""}) == of_a + "its range is from 1 to -inf");
  CHECK(option_error({"a", NAN, 0, 1, kNumber, ""}) == of_a + "it has neither a default nor a rule");
  CHECK(option_error({"a", 0.5, 0, 1, OptionSpec::Kind::integer, ""}) == of_a + "its default 0.5 is no integer");
  CHECK(option_error({"a", 0, 0, 2, OptionSpec::Kind::boolean, ""}) == of_a + "a boolean's range is from 0 to 1");
  CHECK(option_error({"a", 0, 0, 1, OptionSpec::Kind::word, "", false, nullptr, {"x", "y", "z"}}) ==
        of_a + "its range must be from 0 to the number of its words - 1, not from 0 to 1 for 3 words");
  CHECK(option_error({"a", 0, 0, 1, kNumber, "", false, nullptr, {"x", "y"}}) ==
        of_a + "it has words, but is not of Kind::word");
  CHECK(option_error({"a b", 0, 0, 1, kNumber, ""}) ==
        "norm 'mine', option 'a b': a name is lower-case letters, digits and _, first a letter");
  CHECK(norm_error([](NormDef& n) { n.options.push_back(n.options[0]); }) ==
        "norm 'mine', option 'share': declared twice");
}

TEST_CASE("An option cannot take the name of a key that every norm has") {
  RunConfig config;  // of its norm's own options, rmsnorm's, the name is free to others
  const std::vector<OptionSpec>& own = find_norm(config.norm)->options;
  int seen = 0;
  for (const Field& f : fields(config)) {
    if (f.key.rfind("norm.", 0) != 0) continue;
    const std::string key = f.key.substr(5);
    if (std::any_of(own.begin(), own.end(), [&](const OptionSpec& o) { return o.name == key; })) continue;
    CHECK(option_error({key, 0, 0, 1, kNumber, ""}) ==
          str("norm 'mine', option ", quote(key), ": every norm has a key of that name"));
    ++seen;
  }
  CHECK(seen == 4);
}

TEST_CASE("Every norm and placement of the library meets what is asked of those from outside") {
  for (const NormDef* norm : all_norms()) {
    CHECK(error_of([&] { register_norm(*norm); }) ==
          str("norm ", quote(norm->name), ": there is one of that name already"));
  }
  for (const Placement* placement : all_placements()) {
    CHECK(error_of([&] { register_placement(*placement); }) ==
          str("placement ", quote(placement->name), ": there is one of that name already"));
  }
}
