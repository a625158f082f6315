#include "core/memory.h"

#include <cstdlib>
#include <cstring>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace normlab {

namespace {

constexpr std::size_t kLine = 64;

#ifdef __linux__
constexpr std::size_t kHugePage = std::size_t{1} << 21;
constexpr std::size_t kLarge = 2 * kHugePage;  // smaller ones stay where the sanitizers watch them
std::size_t in_pages(std::size_t size) { return (size + kHugePage - 1) / kHugePage * kHugePage; }
#endif

}  // namespace

void* allocate_zeros(std::size_t size) {
#ifdef __linux__
  if (size >= kLarge) {
    void* pages = mmap(nullptr, in_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    (void)madvise(pages, in_pages(size), MADV_HUGEPAGE);  // a wish: without it pages are small
    return pages;
  }
#endif
  const std::size_t lines = (size + kLine - 1) / kLine * kLine;
  void* data = std::aligned_alloc(kLine, lines);
  return data != nullptr ? std::memset(data, 0, lines) : nullptr;
}

void free_zeros(void* data, [[maybe_unused]] std::size_t size) {
#ifdef __linux__
  if (size >= kLarge) {
    if (data != nullptr) munmap(data, in_pages(size));
    return;
  }
#endif
  std::free(data);
}

}  // namespace normlab
