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

}  // namespace normlab
