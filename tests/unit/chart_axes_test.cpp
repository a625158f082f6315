#include "report/chart_axes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "report/chart_text.h"
#include "test.h"

using namespace normlab;

TEST_CASE("ticks are multiples of 1, 2 or 5 times a power of ten") {
  CHECK(nice_ticks(0, 10, 6) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(nice_ticks(0, 10, 5) == std::vector<double>{0, 5, 10});
  CHECK(nice_ticks(2.53, 4.69, 8) == std::vector<double>{3, 3.5, 4, 4.5});
  CHECK(nice_ticks(0.05, 0.41, 5) == std::vector<double>{0.1, 0.2, 0.3, 0.4});
  CHECK(nice_ticks(-1.1, 1.1, 3) == std::vector<double>{-1, 0, 1});
  CHECK(nice_ticks(0.9e22, 1.3e22, 3) == std::vector<double>{1e22, 1.2e22});
}

TEST_CASE("logarithmic ticks are powers of ten where three of them fit, else 1, 2, 5, else linear") {
  CHECK(log_ticks(0.008, 1.2, 8) == std::vector<double>{0.01, 0.1, 1});
  CHECK(log_ticks(0.4, 12, 8) == std::vector<double>{0.5, 1, 2, 5, 10});
  CHECK(log_ticks(2.6, 4.7, 8) == std::vector<double>{3, 3.5, 4, 4.5});
  CHECK(log_ticks(1e-6, 1e6, 5) == std::vector<double>{1e-6, 1e-3, 1, 1e3, 1e6});
}

TEST_CASE("tick labels share their decimals and read well from very small to very large") {
  CHECK(make_axis(2.53, 4.69, 0, false, 8).labels == std::vector<std::string>{"3.0", "3.5", "4.0", "4.5"});
  CHECK(make_axis(0, 20000, 0, false, 3).labels == std::vector<std::string>{"0", "10,000", "20,000"});
  CHECK(make_axis(-1, 1, 0, false, 3).labels == std::vector<std::string>{"−1", "0", "1"});
  CHECK(make_axis(1e30, 1.5e30, 0, false, 2).labels == std::vector<std::string>{"1.0×10³⁰", "1.5×10³⁰"});
  CHECK(make_axis(1e-6, 1e6, 0, true, 5).labels == std::vector<std::string>{"10⁻⁶", "0.001", "1", "1000", "10⁶"});
  CHECK(make_axis(1, 3, 0, false, 8, true).labels == std::vector<std::string>{"1", "2", "3"});
}

TEST_CASE("numbers for people have five digits at most") {
  CHECK(short_number(2.718281828) == "2.7183");
  CHECK(short_number(0.05) == "0.05");
  CHECK(short_number(66.27512) == "66.275");
  CHECK(short_number(-1.5e30) == "−1.5×10³⁰");
  CHECK(short_number(1e-7) == "10⁻⁷");
  CHECK(short_number(0) == "0");
  CHECK(short_number(std::numeric_limits<double>::quiet_NaN()) == "nan");
}

TEST_CASE("an axis places values linearly or by their logarithm") {
  const Axis linear = make_axis(2, 4, 0.25, false, 5);  // 2 - 0.5 to 4 + 0.5
  CHECK(linear.low == 1.5);
  CHECK(linear.high == 4.5);
  CHECK(linear.place(1.5) == 0);
  CHECK(linear.place(3) == 0.5);
  CHECK(linear.place(4.5) == 1);
  const Axis log = make_axis(0.01, 1, 0, true, 5);
  CHECK(log.place(0.1) == Approx(0.5));
  CHECK(log.place(1) == Approx(1));
}

TEST_CASE("a range of zero becomes an axis with the value in the middle") {
  for (const double value : {0.0, 2.5, -3.0, 1e30, 1e-30, 5e-324, 1.7e308}) {
    for (const bool log : {false, true}) {
      if (log && value <= 0) continue;
      CAPTURE(value, log);
      const Axis axis = make_axis(value, value, 0.04, log, 8);
      CHECK(std::isfinite(axis.low));
      CHECK(std::isfinite(axis.high));
      CHECK(axis.low < axis.high);
      if (value < 1e300) CHECK(axis.place(std::max(value, log ? 1e-300 : value)) == Approx(0.5));
      CHECK(axis.ticks.size() >= 1);
      CHECK(axis.ticks.size() <= 8);
    }
  }
  const Axis step = make_axis(1, 1, 0.01, false, 8, true);
  CHECK(step.labels == std::vector<std::string>{"0", "1", "2"});
}

TEST_CASE("a few huge values are cut from the visible range, an ordinary steep start is not") {
  std::vector<double> values;
  for (int i = 0; i < 98; ++i) values.push_back(2 + 0.02 * i);  // 2 to 3.94
  CHECK(visible_range(values).high == Approx(3.94));
  values.push_back(4.6);
  values.push_back(1e30);
  CHECK(visible_range(values).high == 4.6);
  values.back() = -1e30;
  CHECK(visible_range(values).low == 2);
  CHECK(visible_range(values).high == 4.6);
  values.back() = 39;  // 37 above the lowest: less than 20 times the 1.9 of the rest
  CHECK(visible_range(values).high == 39);
  CHECK(visible_range({1e-30, 1e30}).high == 1e30);
  CHECK(visible_range({2.5}).low == 2.5);
}

TEST_CASE("a run that stays at 1e30 for half of its rows does not flatten the others") {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(2 + 0.02 * i), values.push_back(i < 40 ? 3 : 1e30);
  CHECK(visible_range(values).high == Approx(3.98));
}

TEST_CASE("lines of text are broken at blanks and signs, never beyond the width, and nothing is lost") {
  // At 100 pixels per em an "a" is 62 pixels wide and a blank 32.
  CHECK(text_width("a a", 100) == Approx(156));
  CHECK(wrap_text("aa aa aa", 100, 290) == std::vector<std::string>{"aa aa", "aa"});
  CHECK(wrap_text("aa aa", 100, 130) == std::vector<std::string>{"aa", "aa"});
  CHECK(wrap_text("aaaa", 100, 130) == std::vector<std::string>{"aa", "aa"});
  CHECK(wrap_text("aa", 100, 10) == std::vector<std::string>{"a", "a"});
  CHECK(wrap_text("a_a", 100, 150) == std::vector<std::string>{"a_", "a"});
  CHECK(wrap_text("", 100, 10) == std::vector<std::string>{""});
  CHECK(text_length("né×") == 3);
}

TEST_CASE("labels that would overlap are moved apart as little as possible") {
  using Centres = std::vector<double>;
  CHECK(spread_labels({20, 80}, {10, 10}, 0, 100) == Centres{20, 80});
  CHECK(spread_labels({50, 52}, {10, 10}, 0, 100) == Centres{46, 56});
  CHECK(spread_labels({52, 50}, {10, 10}, 0, 100) == Centres{56, 46});
  CHECK(spread_labels({50, 50, 50}, {10, 20, 10}, 0, 100) == Centres{35, 50, 65});
  CHECK(spread_labels({0, 100}, {10, 10}, 0, 100) == Centres{5, 95});
  CHECK(spread_labels({98, 99}, {10, 10}, 0, 100) == Centres{85, 95});
}
