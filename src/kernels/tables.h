// The tables of this build, for dispatch.cpp and the files that define them. In the double build there is only the
// portable one.
#pragma once

#include "kernels/table.h"

#if defined(__x86_64__) && !defined(NORMLAB_DOUBLE)
#define NORMLAB_X86_KERNELS
#endif

namespace normlab {

bool portable_supported();
extern const KernelTable portable_kernels;

#ifdef NORMLAB_X86_KERNELS
bool avx2_supported();
bool avx512_supported();
extern const KernelTable avx2_kernels;
extern const KernelTable avx512_kernels;
#endif

// clang 14 knows the instructions too; older compilers do without.
#if defined(NORMLAB_X86_KERNELS) && (defined(__clang__) ? __clang_major__ >= 10 : __GNUC__ >= 11)
#define NORMLAB_BF16_KERNELS
bool avx512_bf16_supported();
extern const Products avx512_bf16_products;
#endif

}  // namespace normlab
