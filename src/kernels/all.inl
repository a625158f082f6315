// Everything of one instruction set. The including file defines, inside its own namespaces, multiply_add, kTileRows and
// kTileColumns.
#include "kernels/gemm.inl"
#include "kernels/math.inl"
#include "kernels/rows.inl"
// after rows.inl, whose sums it uses
#include "kernels/norm.inl"
// after gemm.inl and math.inl
#include "kernels/attention.inl"
#include "kernels/peak.inl"
// after gemm.inl and rows.inl
#include "kernels/bf16.inl"

constexpr KernelTable make_table(const char* name, const char* about, bool (*supported)()) {
  return {.name = name,
          .about = about,
          .supported = supported,
          .products = {packed_size, pack, pack_transposed, gemm, no_scratch, gemm_transposed},
          .bf16_products = {packed_size, pack_bf16, pack_transposed_bf16, gemm_bf16, no_scratch, gemm_transposed_bf16},
          .sum = sum,
          .dot = dot,
          .sum_squares = sum_squares,
          .column_sums = column_sums,
          .axpby = axpby,
          .scale = scale,
          .multiply = multiply,
          .unary = unary,
          .attention_saved = attention_saved,
          .attention_scratch = attention_scratch,
          .attention = attention,
          .attention_backward = attention_backward,
          .norm_rows = norm_rows,
          .norm_rows_backward = norm_rows_backward,
          .round_bf16 = round_bf16,
          .adam = adam,
          .fma_chain = fma_chain};
}
