#include "lab/bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "core/parallel.h"
#include "core/text.h"
#include "kernels/kernels.h"
#include "lab/progress.h"
#include "normlab/error.h"

namespace normlab {

namespace {

constexpr double kShortest = 0.005;          // seconds a timed piece lasts at least
constexpr int64_t kFewest = 5, kMost = 101;  // repetitions

// Times repetitions by a clock.
struct Stopwatch {
  double (*now)();

  double time_of(const Work& work, int64_t times) const {
    const double start = now();
    work.repeat(times);
    return now() - start;
  }

  // How many repetitions last that long, and how long they took. Warms up on the way.
  std::pair<int64_t, double> times_lasting(const Work& work, double seconds) const {
    const double first = time_of(work, 1);
    if (first > 10 * seconds) return {1, first};
    for (int64_t times = 1;;) {
      const double took = time_of(work, times);
      if (took >= seconds) return {times, took};
      const double enough = 1.1 * static_cast<double>(times) * seconds / std::max(took, 1e-9);
      times = std::max(2 * times, std::min(100 * times, static_cast<int64_t>(enough)));
    }
  }
};

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

MedianRange median_range(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

// ---- limits ----

Work fma_peak(int threads) {
  constexpr int64_t kRounds = 10'000;
  const double each = kernels().fma_chain(1) * static_cast<double>(kRounds);
  return {on_threads(threads, [](int64_t) { kernels().fma_chain(kRounds); }), each * threads, "GFLOP/s", 1e9};
}

Work copy_bandwidth(int64_t bytes, int threads) {
  const auto elements = bytes / static_cast<int64_t>(sizeof(real));
  const auto from = std::make_shared<Slab>(elements), to = std::make_shared<Slab>(elements);
  from->fill(1);  // memory never written to is one and the same page of zeros
  const int64_t part = elements / threads, part_bytes = part * static_cast<int64_t>(sizeof(real));
  return {on_threads(threads,
                     [=](int64_t thread) {
                       std::memcpy(to->data() + thread * part, from->data() + thread * part,
                                   static_cast<std::size_t>(part_bytes));
                     }),
          2.0 * static_cast<double>(part_bytes * threads), "GB/s", 1e9};
}

std::function<void(int64_t)> on_threads(int threads, std::function<void(int64_t)> body) {
  return [threads, body = std::move(body)](int64_t times) {
    parallel_for(threads, [&](int64_t thread) {
      for (int64_t i = 0; i < times; ++i) body(thread);
    });
  };
}

std::function<void(int64_t)> one_by_one(std::function<void()> call) {
  return [call = std::move(call)](int64_t times) {
    for (int64_t i = 0; i < times; ++i) call();
  };
}

real bench_number(int64_t i) {
  const auto mixed = static_cast<uint32_t>(i) * 2654435761u;  // Knuth's multiplicative hash
  return static_cast<real>(static_cast<double>(mixed >> 8) / (1 << 23) - 1);
}

// ---- measuring ----

BenchRow measure(const Pair& pair, bool time, double seconds, double (*now)()) {
  const Stopwatch watch{now};
  const auto shown = [&](const Work& w, int64_t times, double took) {
    const double amount = w.amount * static_cast<double>(times);
    return time ? took / amount / w.unit_size : amount / took / w.unit_size;
  };
  // One thread finds out how much is enough, doing all threads' work: on a busy machine several threads may wait longer
  // for each other than they work, and a short piece would pass for a long one.
  const int in_force = threads();
  const auto times_lasting = [&](const Work& w, double lasting) {
    set_threads(1);
    const auto [times, took] = watch.times_lasting(w, lasting * in_force);
    set_threads(in_force);
    return std::pair(times, took / in_force);
  };
  const bool compared = pair.against.repeat != nullptr;
  const auto [times, once] = times_lasting(pair.work, kShortest);
  const int64_t against_times =
      compared ? times_lasting(pair.against, std::clamp(once / 4, kShortest, 10 * kShortest)).first : 0;
  const auto against = [&] { return compared ? watch.time_of(pair.against, against_times) : 0.0; };

  double before = against();
  const double wanted = seconds / (once + before);
  const int64_t repetitions = std::clamp(static_cast<int64_t>(std::ceil(wanted)), kFewest, kMost);
  std::vector<double> values, limits, ratios;
  for (int64_t i = 0; i < repetitions; ++i) {
    const double took = watch.time_of(pair.work, times), after = against();
    values.push_back(shown(pair.work, times, took));
    if (compared) {
      limits.push_back(shown(pair.against, against_times, (before + after) / 2));
      // In amounts: elements per second may be shown while bytes are compared.
      ratios.push_back(values.back() * pair.work.unit_size / (limits.back() * pair.against.unit_size));
    }
    before = after;
  }
  BenchRow row;
  row.unit = pair.work.unit;
  row.value = median_range(values);
  row.repetitions = repetitions;
  if (compared) {
    row.against = pair.against_name;
    row.against_unit = pair.against.unit;
    row.against_value = median_range(limits).median;
    row.ratio = median_range(ratios);
  }
  return row;
}

void run_bench_group(const BenchGroup& group, const BenchOptions& options,
                     const std::function<void(const BenchRow&)>& row) {
  for (const Measurement& m : group.measurements()) {
    std::vector<int> counts = {1, options.threads};
    if (m.threads == Measurement::Threads::one || options.threads == 1) counts = {1};
    if (m.threads == Measurement::Threads::all) counts = {options.threads};
    for (const int count : counts) {
      set_threads(count);
      BenchRow result;
      try {
        result = measure(m.prepare(count), m.time, options.seconds);
      } catch (const Error& error) {
        message("skipped", str(group.name, ", ", m.name, ": ", error.what()).c_str());
        result.skipped = true;
      }
      result.group = group.name;
      result.name = m.name;
      result.threads = count;
      row(result);
    }
  }
  set_threads(options.threads);
}

// ---- groups ----

const std::vector<BenchGroup>& bench_groups() {
  static const std::vector<BenchGroup> groups = {
      {"gemm", "matrix products of the layer shapes, of the FMA peak", gemm_measurements, true},
      {"norms", "LayerNorm and RMSNorm rows, of the copy bandwidth", norm_measurements, true},
      {"attention", "causal attention, counted on the exact triangle, of the FMA peak", attention_measurements, true},
      {"elementwise", "exp, tanh, gelu, of the copy bandwidth", elementwise_measurements, true},
      {"step", "whole training steps, of the FMA peak", step_measurements},
      {"zoo", "steps of every placement and norm against pre-RMSNorm, composed norms against fused", zoo_measurements},
      {"depth", "time per layer at 12, 100 and 1000 layers, start-up", depth_measurements},
  };
  return groups;
}

std::vector<const BenchGroup*> find_bench_groups(const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const BenchGroup& group : bench_groups()) known.emplace_back(group.name);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UsageError(str("bench: unknown group ", quote(name), did_you_mean(name, known),
                           "; expected one of: ", join(known, ", ")));
    }
  }
  std::vector<const BenchGroup*> out;
  for (const BenchGroup& group : bench_groups()) {
    if (names.empty() || std::find(names.begin(), names.end(), group.name) != names.end()) out.push_back(&group);
  }
  return out;
}

}  // namespace normlab
