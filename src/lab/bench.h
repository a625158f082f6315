// normlab bench: what share of this machine's limits the kernels, the ops and whole training steps reach. The limits
// move by tens of percent from minute to minute on shared machines, so every measurement alternates with its own limit
// and what counts is the ratio of the two.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/params.h"

namespace normlab {

// Median (of an even number: mean of the middle two), least and greatest. At least one value.
struct MedianRange {
  double median = 0, min = 0, max = 0;
};
MedianRange median_range(std::vector<double> values);

// Something to time. Repeating is its own affair, so that several threads are started once for many repetitions.
struct Work {
  std::function<void(int64_t times)> repeat;
  double amount = 1;  // FLOPs or bytes of one time
  std::string unit;  // of the figure shown: amount per second / unit_size, or seconds / unit_size where a time is shown
  double unit_size = 1;
};

// A measurement ready to run. Without `against.repeat` it has no ratio.
struct Pair {
  Work work;
  std::string against_name;  // "FMA peak"
  Work against;
};

struct Measurement {
  std::string name;
  enum class Threads { one, all, each } threads = Threads::each;
  std::function<Pair(int threads)> prepare;  // takes the memory; called with that number of threads in force
  bool time = false;                         // shows a time, and the ratio of two times: less is better
};

struct BenchGroup {
  std::string_view name;
  std::string_view summary;
  std::vector<Measurement> (*measurements)();
  bool alike = false;  // its ratios are of one kind: a median and a worst over them mean something
};
const std::vector<BenchGroup>& bench_groups();
// The groups named, or all; UsageError with the nearest name.
std::vector<const BenchGroup*> find_bench_groups(const std::vector<std::string>& names);

struct BenchRow {
  std::string group, name;
  int threads = 1;
  std::string unit;
  MedianRange value;
  std::string against;  // "" = no ratio
  std::string against_unit;
  double against_value = 0;  // median
  MedianRange ratio;
  int64_t repetitions = 0;
  bool skipped = false;  // this machine cannot hold it
};

struct BenchOptions {
  int threads = 1;        // what "all" means
  double seconds = 0.05;  // per measurement, but never fewer than five repetitions
};

// Runs a group's measurements, with one and with all threads, and hands over each row when it is there.
void run_bench_group(const BenchGroup& group, const BenchOptions& options,
                     const std::function<void(const BenchRow&)>& row);

// Runs work and limit in turns, a limit before and after every repetition; the mean of the two is what it is compared
// with. `now` is a clock in seconds.
double steady_seconds();
BenchRow measure(const Pair& pair, bool time, double seconds, double (*now)() = steady_seconds);

// Runs our step and the one in PyTorch in turns, where there is a Python with PyTorch; says on stderr where there is
// none.
void run_bench_peers(const BenchOptions& options, const std::function<void(const BenchRow&)>& row);

// Median and worst ratio per thread count and limit, one line for each that has three rows or more.
std::string bench_summary(const std::vector<BenchRow>& rows);
std::string bench_table_header();
std::string bench_table_row(const BenchRow& row);
std::string bench_csv(const std::vector<BenchRow>& rows);

// ---- what the groups are made of ----

Work fma_peak(int threads);                       // all threads at once, as the kernels in force can do it
Work copy_bandwidth(int64_t bytes, int threads);  // memcpy of that many bytes, cut evenly; counts reading and writing

// The work counted: 2 per multiply-add; attention on the causal triangle with its diagonal, forward alone; norms the
// bytes that cannot be avoided (read x, write y; read x and dy, write dx).
double gemm_flops(int64_t rows, int64_t out, int64_t in);
double attention_flops(int64_t heads, int64_t time, int64_t head_width);
double norm_bytes(int64_t rows, int64_t cols, bool backward);

// body(thread) over and over on every thread, each beside the others.
std::function<void(int64_t times)> on_threads(int threads, std::function<void(int64_t thread)> body);
// call() over and over, which may use threads itself.
std::function<void(int64_t times)> one_by_one(std::function<void()> call);

// Numbers between -1 and 1 without a pattern a processor could know.
real bench_number(int64_t i);

std::vector<Measurement> gemm_measurements();
std::vector<Measurement> norm_measurements();
std::vector<Measurement> attention_measurements();
std::vector<Measurement> elementwise_measurements();
std::vector<Measurement> step_measurements();
std::vector<Measurement> zoo_measurements();
std::vector<Measurement> depth_measurements();

// The sizes of whole steps, as settings of a config.
struct StepSize {
  std::string_view name;
  int64_t layers, width, heads, context, batch;
};
inline constexpr StepSize kStepSizes[] = {{"24 x 64", 24, 64, 4, 64, 16}, {"12 x 256", 12, 256, 8, 128, 16}};

// A trainer with its data. The learning rate is 0: no combination diverges, and the work is the same.
class BenchStep {
 public:
  explicit BenchStep(const StepSize& size, const std::vector<std::string>& settings = {});
  ~BenchStep();
  void run();
  double flops() const;  // of one step
  double tokens() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace normlab
