// The one room that knows threads. Work is cut by shape, never by the number of threads, so results cannot depend on
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace normlab {

// Threads to use from now on; 0 = the default: OMP_NUM_THREADS if set, else the processors this process may use
// (affinity and the container's CPU quota). Returns the number in force.
int set_threads(int count);
int threads();

// True inside a parallel_for body that was spread over threads; a nested parallel_for then runs serially.
bool in_parallel();

// Whether a parallel_for called here would run its items one after the other, so that they may share scratch memory.
inline bool runs_serially() { return in_parallel() || threads() == 1; }

namespace parallel_detail {
void run(std::int64_t count, void (*body)(const void*, std::int64_t), const void* closure);
}

// Calls body(i) for every i in [0, count), each exactly once, item i always on thread i mod threads. Bodies may not
// write what another reads. They must not throw.
template <class Body>
void parallel_for(std::int64_t count, const Body& body) {
  parallel_detail::run(
      count, [](const void* closure, std::int64_t i) { (*static_cast<const Body*>(closure))(i); },
      std::addressof(body));
}

// The same, but one after the other where the whole loop touches fewer numbers than starting threads is worth: small
// models must not lose from more threads.
template <class Body>
void parallel_for_elements(std::int64_t elements, std::int64_t count, const Body& body) {
  constexpr std::int64_t kWorthThreads = 32768;
  if (elements >= kWorthThreads) return parallel_for(count, body);
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace normlab
