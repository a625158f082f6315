// The example of experiments/outside against values worked by hand. As a project of its own it is tested by
// tests/outside.
#include "normed.h"
#include "wired.h"

#define main example_main
#include "../experiments/outside/outside.cpp"
#undef main

TEST_CASE("l1norm divides by the mean absolute deviation, as large as a normal distribution's standard deviation") {
  // mean 3, deviations -2 -1 0 3, their mean size 1.5: 1.5 sqrt(pi / 2) = 1.8799712; pi / 2 1.5^2 = 3.5342917
  Setup s{.norm = "l1norm"};
  s.def = &l1norm, s.eps = 0;
  check_near(normed(s, 1, 4, {1, 2, 3, 6}).y, {-1.0638461, -0.5319230, 0, 1.5957691}, 1e-6);
  s.eps = 4 - 3.5342917;
  s.gain = real(2), s.bias = real(1);
  check_near(normed(s, 1, 4, {1, 2, 3, 6}).y, {-1, 0, 1, 4}, 1e-6);
}

TEST_CASE("rskip takes the stream in twice, a norm after each") {
  const Wired w = wired(rskip, {kF, kG});
  const V x1 = ln(kX + ln(kX + kF));
  check_row(w.seen[0], kX);
  check_row(w.stream[0], x1);
  check_row(w.seen[1], x1);
  check_row(w.result, ln(x1 + ln(x1 + kG)));
}
