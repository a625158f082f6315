// normlab bench: statistics, counting, order of repetitions, output. Nothing here looks at a time.
#include "lab/bench.h"

#include <algorithm>

#include "core/parallel.h"
#include "data/corpus.h"
#include "kernels/kernels.h"
#include "normlab/norm.h"
#include "normlab/placement.h"
#include "process.h"
#include "report/csv.h"
#include "test.h"

using namespace normlab;

namespace {

double fake_time = 0;
double fake_now() { return fake_time; }

// Writes its letter whenever it is called and takes that many (exactly representable) seconds per repetition.
Work fake_work(std::string& log, char letter, double seconds, double amount) {
  return {[&log, letter, seconds](int64_t times) {
            log += letter;
            fake_time += seconds * static_cast<double>(times);
          },
          amount, "things", 1};
}

// With one thread: the fake clock knows no work side by side.
BenchRow fake_measure(const Pair& pair, bool time, double seconds) {
  set_threads(1);
  return measure(pair, time, seconds, fake_now);
}

const char* const kColumns =
    "group,name,threads,kernels,unit,value,value_min,value_max,against,against_unit,against_value,ratio,ratio_min,"
    "ratio_max,repetitions\n";

}  // namespace

TEST_CASE("median and range of an odd, an even and a single number of values") {
  const MedianRange odd = median_range({5, 1, 9});
  CHECK((odd.median == 5 && odd.min == 1 && odd.max == 9));
  const MedianRange even = median_range({8, 2, 4, 100});
  CHECK((even.median == 6 && even.min == 2 && even.max == 100));
  const MedianRange single = median_range({3});
  CHECK((single.median == 3 && single.min == 3 && single.max == 3));
}

TEST_CASE("a measurement alternates with its limit, which also begins and ends it") {
  std::string log;
  const BenchRow row = fake_measure({fake_work(log, 'w', 0.125, 1), "limit", fake_work(log, 'l', 0.125, 1)}, false, 0);
  CHECK(row.repetitions == 5);
  REQUIRE(log.size() > 11);
  CHECK(log.substr(log.size() - 11) == "lwlwlwlwlwl");
}

TEST_CASE("more seconds are more repetitions, up to a bound") {
  std::string log;
  const Pair pair = {fake_work(log, 'w', 0.5, 1), "limit", fake_work(log, 'l', 0.25, 1)};
  CHECK(fake_measure(pair, false, 7.5).repetitions == 10);  // of 0.75 seconds
  CHECK(fake_measure(pair, false, 1e6).repetitions == 101);
}

TEST_CASE("the ratio compares amounts per second, whatever figures are shown") {
  std::string log;
  Work work = fake_work(log, 'w', 0.5, 24), limit = fake_work(log, 'l', 0.25, 32);
  work.unit_size = 8;
  limit.unit_size = 2;
  const BenchRow row = fake_measure({work, "limit", limit}, false, 0);
  CHECK(row.value.median == 6);      // 24 / 0.5 / 8
  CHECK(row.against_value == 64);    // 32 / 0.25 / 2
  CHECK(row.ratio.median == 0.375);  // 48 / 128
}

TEST_CASE("where a time is shown, the ratio is one of times per amount") {
  std::string log;
  Work deep = fake_work(log, 'w', 2, 64), shallow = fake_work(log, 'l', 0.25, 4);
  deep.unit_size = shallow.unit_size = 0.5;
  const BenchRow row = fake_measure({deep, "shallow", shallow}, true, 0);
  CHECK(row.value.median == 0.0625);  // 2 / 64 / 0.5
  CHECK(row.against_value == 0.125);  // 0.25 / 4 / 0.5
  CHECK(row.ratio.median == 0.5);
}

TEST_CASE("each repetition is compared with the mean of the limits around it") {
  static double slower;
  slower = 16;
  std::string log;
  // Every limit takes twice as long as the one before.
  Work limit = {[](int64_t times) {
                  fake_time += slower * static_cast<double>(times);
                  slower *= 2;
                },
                1, "things", 1};
  const BenchRow row = fake_measure({fake_work(log, 'w', 0.5, 1), "limit", limit}, false, 0);
  // A first call, long enough, takes 16; then the limits take 32, 64, 128, ... and their means are 48, 96, 192, ...
  CHECK(row.ratio.min == Approx(48 / 0.5));
  CHECK(row.ratio.median == Approx(192 / 0.5));
  CHECK(row.ratio.max == Approx(768 / 0.5));
}

TEST_CASE("short work is repeated until it lasts five milliseconds") {
  static int64_t last;
  last = 0;
  const Work work = {[](int64_t times) {
                       last = times;
                       fake_time += static_cast<double>(times) * 0x1p-20;
                     },
                     1, "things", 1};
  fake_measure({work, "", {}}, false, 0);
  CHECK(static_cast<double>(last) * 0x1p-20 >= 0.005);
  CHECK(static_cast<double>(last) * 0x1p-20 < 0.05);
}

TEST_CASE("a group runs each measurement with the threads it asks for") {
  static std::vector<int> in_force;
  in_force.clear();
  const BenchGroup group = {"g", "", [] {
                              const auto prepare = [](int) {
                                in_force.push_back(threads());
                                return Pair{fma_peak(1), "", {}};
                              };
                              return std::vector<Measurement>{{"a", Measurement::Threads::each, prepare},
                                                              {"b", Measurement::Threads::all, prepare},
                                                              {"c", Measurement::Threads::one, prepare}};
                            }};
  std::vector<std::string> seen;
  const auto note = [&](const BenchRow& r) { seen.push_back(r.group + r.name + std::to_string(r.threads)); };
  run_bench_group(group, {.threads = 2, .seconds = 0}, note);
  CHECK(seen == std::vector<std::string>{"ga1", "ga2", "gb2", "gc1"});
  if (set_threads(2) == 2) CHECK(in_force == std::vector<int>{1, 2, 2, 1});
  seen.clear();
  run_bench_group(group, {.threads = 1, .seconds = 0}, note);
  CHECK(seen == std::vector<std::string>{"ga1", "gb1", "gc1"});
}

TEST_CASE("a measurement that this machine cannot hold is a row without figures") {
  const BenchGroup group = {"g", "", [] {
                              return std::vector<Measurement>{
                                  {"big", Measurement::Threads::one, [](int) -> Pair { throw Error("too big"); }}};
                            }};
  std::vector<BenchRow> rows;
  run_bench_group(group, {.threads = 1, .seconds = 0}, [&](const BenchRow& r) { rows.push_back(r); });
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].skipped);
  CHECK(bench_csv(rows) == std::string(kColumns) + "g,big,1," + kernels().name + ",,,,,,,,,,,0\n");
  CHECK(bench_table_row(rows[0]).find("skipped") != std::string::npos);
}

TEST_CASE("work is counted as by hand") {
  CHECK(gemm_flops(64, 192, 64) == 1572864);       // 2 x 64 x 192 x 64
  CHECK(attention_flops(1, 64, 16) == 133120);     // (Q K^T and P V) x 2 x 16 x (64 x 65 / 2)
  CHECK(attention_flops(4, 256, 64) == 33685504);  // 2 x 2 x 4 x 64 x (256 x 257 / 2)
  const double element = sizeof(real);
  CHECK(norm_bytes(4096, 256, false) == 2097152 * element);  // read x, write y
  CHECK(norm_bytes(4096, 256, true) == 3145728 * element);   // read x and dy, write dx
}

TEST_CASE("a step counts 6 per weight of a matrix and attention on its triangle") {
  DataConfig data;
  data.tokens = 100000;
  const double vocabulary = static_cast<double>(load_corpus(data, 64).vocabulary());
  // Per token and layer 12 x 64 x 64 weights, and 3 x 2 x 2 x 64 x 65 / 2 of attention; the head 64 weights per
  // character.
  CHECK(BenchStep(kStepSizes[0]).flops() == 1024 * (6 * (24 * 49152 + 64 * vocabulary) + 24 * 24960));
  // A smaller one of the other shape: 2 layers, width 32, 2 heads, context 16, batch 4.
  CHECK(BenchStep({"", 2, 32, 2, 16, 4}).flops() == 64 * (6 * (2 * 12288 + 32 * vocabulary) + 2 * 3264));
}

TEST_CASE("the peak kernel of every table reports two operations per multiply-add") {
  for (const KernelTable* table : all_kernels()) {
    if (!table->supported()) continue;
    INFO(table->name);
    const double lanes = (std::string(table->name) == "avx512" ? 64.0
                          : std::string(table->name) == "avx2" ? 32.0
                                                               : 16.0) /
                         sizeof(real);
    CHECK(table->fma_chain(1000) == 2 * 12 * 1000 * lanes);
  }
}

TEST_CASE("a row and its CSV line") {
  BenchRow row;
  row.group = "gemm", row.name = "forward 64x64, 64 rows", row.threads = 2, row.unit = "GFLOP/s";
  row.value = {200, 190, 210};
  row.against = "FMA peak", row.against_unit = "GFLOP/s", row.against_value = 250, row.ratio = {0.8, 0.75, 0.85};
  row.repetitions = 7;
  CHECK(bench_csv({row}) == std::string(kColumns) + "gemm,\"forward 64x64, 64 rows\",2," + kernels().name +
                                ",GFLOP/s,200,190,210,FMA peak,GFLOP/s,250,0.8,0.75,0.85,7\n");
  const std::string line = bench_table_row(row);
  CHECK(line.find("0.800 (0.750 .. 0.850)") != std::string::npos);
  CHECK(line.find("FMA peak 250.0 GFLOP/s") != std::string::npos);
  BenchRow alone = row;
  alone.against = "";
  CHECK(bench_csv({alone}).find(",200,190,210,,GFLOP/s,,,,,7\n") != std::string::npos);
  CHECK(bench_table_row(alone).find("0.800") == std::string::npos);
}

TEST_CASE("the summary gives median and worst of three or more") {
  std::vector<BenchRow> rows(3);
  const double ratios[] = {0.9, 0.5, 0.8};
  for (std::size_t i = 0; i < 3; ++i)
    rows[i].group = "gemm", rows[i].against = "FMA peak", rows[i].ratio.median = ratios[i];
  CHECK(bench_summary(rows).find("median 0.800, worst 0.500") != std::string::npos);
  rows.pop_back();
  CHECK(bench_summary(rows).empty());
}

TEST_CASE("every registered placement and norm is in the zoo") {
  std::vector<std::string> names;
  for (const Measurement& m : zoo_measurements()) names.push_back(m.name);
  const auto has = [&](const std::string& name) { return std::count(names.begin(), names.end(), name) == 1; };
  for (const Placement* p : all_placements()) CHECK((p->name == "pre" || has("placement " + std::string(p->name))));
  for (const NormDef* n : all_norms()) {
    CHECK((n->name == "rmsnorm" || has("norm " + std::string(n->name))));
    CHECK((n->fused == nullptr || has(std::string(n->name) + " composed")));
  }
}

TEST_CASE("wrong words on the command line are refused before anything is measured") {
  const ProcessResult unknown = run_tool({"bench", "gem"});
  CHECK(unknown.code == 2);
  CHECK(unknown.err.find("unknown group 'gem' (did you mean 'gemm'?)") != std::string::npos);
  CHECK(unknown.out.empty());
  const ProcessResult seconds = run_tool({"bench", "norms", "--seconds", "-1"});
  CHECK(seconds.code == 2);
  CHECK(seconds.err.find("--seconds") != std::string::npos);
  const ProcessResult file = run_tool({"bench", "norms", "--csv", "/nonexistent/b.csv"});
  CHECK(file.code == 1);
  CHECK(file.err.find("/nonexistent/b.csv") != std::string::npos);
  CHECK(file.out.empty());
}

TEST_CASE("bench writes what it prints as CSV, and does without PyTorch") {
  const ScratchDirectory scratch;
  const std::string file = (scratch / "bench.csv").string();
  ::setenv("PYTHON", "/bin/false", 1);
  const ProcessResult result =
      run_tool({"bench", "attention", "--threads", "1", "--seconds", "0", "--csv", file, "--peers"});
  ::unsetenv("PYTHON");
  INFO(result.err);
  CHECK(result.code == 0);
  CHECK(result.err.find("skipped: peers") != std::string::npos);
  const CsvTable table = read_csv(file);
  CHECK(table.cells.size() == 9);
  for (const auto& ratio : table.numbers("ratio")) CHECK((ratio && *ratio > 0));
  for (const auto& threads : table.numbers("threads")) CHECK(threads == 1.0);
}
