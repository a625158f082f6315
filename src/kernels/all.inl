// Everything of one instruction set. The including file defines, inside its own namespaces, multiply_add, kTileRows and
// kTileColumns.
#include "kernels/gemm.inl"
#include "kernels/math.inl"
#include "kernels/rows.inl"
// after rows.inl, whose sums it uses
#include "kernels/norm.inl"

constexpr KernelTable make_table(const char* name, const char* about, bool (*supported)()) {
  return {.name = name,
          .about = about,
          .supported = supported,
          .packed_size = packed_size,
          .pack = pack,
          .pack_transposed = pack_transposed,
          .gemm = gemm,
          .gemm_transposed = gemm_transposed,
          .sum = sum,
          .dot = dot,
          .sum_squares = sum_squares,
          .axpby = axpby,
          .scale = scale,
          .multiply = multiply,
          .unary = unary,
          .unary_backward = unary_backward,
          .softmax = softmax,
          .softmax_backward = softmax_backward,
          .norm_row = norm_row,
          .norm_row_backward = norm_row_backward,
          .round_bf16 = round_bf16,
          .adam = adam};
}
