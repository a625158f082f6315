// The main of a test program under Catch2 2.13; version 3 links its own.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#endif
#include <cstdio>
#include <cstdlib>

#include "core/parallel.h"
#include "test.h"

#if __has_include(<catch2/catch_all.hpp>)
using Catch::EventListenerBase;
#else
using EventListenerBase = Catch::TestEventListenerBase;
#endif

namespace {

// Every test case starts with the default number of threads, whatever the one before it left behind.
class Threads : public EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;
  void testCaseStarting(const Catch::TestCaseInfo& test) override {
    EventListenerBase::testCaseStarting(test);
    [[maybe_unused]] const int count = normlab::set_threads(0);
#ifdef __SANITIZE_THREAD__
    if (count < 2) {
      std::fputs("the thread sanitizer sees nothing with one thread: set OMP_NUM_THREADS=3\n", stderr);
      std::exit(1);
    }
#endif
  }
};

}  // namespace

CATCH_REGISTER_LISTENER(Threads)
