#include "core/parallel.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "core/text.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(_OPENMP) || defined(NORMLAB_STD_THREADS)
#define NORMLAB_THREADED
#endif
#ifdef __linux__
#include <sched.h>
#endif

namespace normlab {

namespace {

int threads_in_force = 0;  // 0 = not chosen yet
thread_local bool inside = false;

#ifdef NORMLAB_THREADED

int affinity_count() {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// The container's CPU quota in whole processors (cgroup v2, then v1), or a large number where there is none. OpenMP
// itself counts the host's processors; spinning barriers above the quota cost factors of ten.
int quota_count() {
  std::ifstream v2("/sys/fs/cgroup/cpu.max");
  std::string quota, period;
  if (!(v2 >> quota >> period)) {
    std::ifstream q("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), p("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (!(q >> quota) || !(p >> period)) return 1 << 20;
  }
  const auto q = parse_double(quota), p = parse_double(period);
  if (!q || !p || *q <= 0 || *p <= 0) return 1 << 20;  // "max" or -1
  return std::max(1, static_cast<int>(*q / *p + 0.5));
}

int default_count() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const auto wanted = parse_int(text);
    if (wanted && *wanted >= 1 && *wanted <= 1024) return static_cast<int>(*wanted);
  }
  return std::min(affinity_count(), quota_count());
}

#endif

}  // namespace

int set_threads([[maybe_unused]] int count) {
#ifdef NORMLAB_THREADED
  threads_in_force = count > 0 ? count : default_count();
#else
  threads_in_force = 1;
#endif
  return threads_in_force;
}

int threads() { return threads_in_force > 0 ? threads_in_force : set_threads(0); }

bool in_parallel() { return inside; }

namespace parallel_detail {

void run(std::int64_t count, void (*body)(const void*, std::int64_t), const void* closure) {
  const auto workers = static_cast<int>(std::min<std::int64_t>(count, inside ? 1 : threads()));
  if (workers <= 1) {
    for (std::int64_t i = 0; i < count; ++i) body(closure, i);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel num_threads(workers)
  {
    // A runtime may grant fewer threads than asked for; then each takes more items.
    const int granted = omp_get_num_threads();
    inside = true;
    for (std::int64_t i = omp_get_thread_num(); i < count; i += granted) body(closure, i);
    inside = false;
  }
#elif defined(NORMLAB_STD_THREADS)
  // Started anew for every call: slow, but a thread sanitizer understands it, which it does not with OpenMP's own
  // barriers.
  std::vector<std::thread> started;
  for (int first = 0; first < workers; ++first) {
    started.emplace_back([=] {
      inside = true;
      for (std::int64_t i = first; i < count; i += workers) body(closure, i);
    });
  }
  for (std::thread& thread : started) thread.join();
#endif
}

}  // namespace parallel_detail

}  // namespace normlab
