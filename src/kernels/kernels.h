// Inner loops: single-threaded pure functions on pointers, one table per instruction set, chosen at run time.
// All matrices are row-major with a leading dimension (distance between rows, in elements) that may exceed the row
// length; elements beyond the row length are never read into a result nor written. Sums run in an order that depends on
// the sizes only: 16 interleaved partial sums combined by a fixed tree, so AVX2 and AVX-512 give the same bits. The
// functions: kernels/table.h.
#pragma once

#include <string_view>
#include <vector>

#include "kernels/table.h"

namespace normlab {

// The table in force: the best one this processor supports, or the one named by the environment variable
// NORMLAB_KERNELS. A name that is unknown or not supported here is a UsageError.
const KernelTable& kernels();

// The products of the table in force: of operands as they are, or of operands rounded to bfloat16, by the processor's
// own instructions where the table is avx512 and the processor has them. Those give the same bits.
const Products& products(bool bf16);

// The products by bfloat16 instructions, or null where there are none (tests).
const Products* native_bf16_products();

// All compiled tables, best first, whether or not this processor supports them.
std::vector<const KernelTable*> all_kernels();

// For tests: switches to `name` until the next call; "" = as at the start of the program, reading NORMLAB_KERNELS
// again.
void choose_kernels(std::string_view name);

}  // namespace normlab
