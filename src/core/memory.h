// Memory for slabs of numbers.
#pragma once

#include <cstddef>

namespace normlab {

// `size` bytes of zeros on a cache line, or null. Large ones come as fresh pages from the system, which are zero already
// and are touched where they are first used, in huge pages where it has them: a start then does not wait for memory to be
// cleared and mapped in pieces of 4 KiB.
void* allocate_zeros(std::size_t size);
void free_zeros(void* data, std::size_t size);

}  // namespace normlab
