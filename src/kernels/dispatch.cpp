// The one file that asks the processor what it can do. `__builtin_cpu_supports` also asks whether the operating system
// saves the wide registers. It is asked here and not in the tables' own files, whose every function may use the
// instructions in question.
#include <atomic>
#include <cstdlib>
#include <string>

#include "core/text.h"
#include "kernels/kernels.h"
#include "kernels/tables.h"
#include "normlab/error.h"

namespace normlab {

#ifdef NORMLAB_X86_KERNELS
bool avx2_supported() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

bool avx512_supported() {
  return avx2_supported() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}
#endif

#ifdef NORMLAB_BF16_KERNELS
bool avx512_bf16_supported() { return avx512_supported() && __builtin_cpu_supports("avx512bf16"); }
#endif

const Products* native_bf16_products() {
#ifdef NORMLAB_BF16_KERNELS
  if (avx512_bf16_supported()) return &avx512_bf16_products;
#endif
  return nullptr;
}

bool portable_supported() { return true; }

std::vector<const KernelTable*> all_kernels() {
  return {
#ifdef NORMLAB_X86_KERNELS
      &avx512_kernels, &avx2_kernels,
#endif
      &portable_kernels};
}

namespace {

std::vector<std::string> names(bool supported_only) {
  std::vector<std::string> result;
  for (const KernelTable* table : all_kernels())
    if (!supported_only || table->supported()) result.emplace_back(table->name);
  return result;
}

const KernelTable* find(std::string_view name, std::string_view asked_by) {
  for (const KernelTable* table : all_kernels()) {
    if (name != table->name) continue;
    if (table->supported()) return table;
    throw UsageError(str(asked_by, ": this processor does not support the kernels ", quote(name),
                         "; it supports: ", join(names(true), ", ")));
  }
  throw UsageError(str(asked_by, ": unknown kernels ", quote(name), did_you_mean(name, names(false)),
                       "; expected one of: ", join(names(false), ", ")));
}

const KernelTable* automatic() {
  const char* named = std::getenv("NORMLAB_KERNELS");
  if (named != nullptr && *named != '\0') return find(named, "environment variable NORMLAB_KERNELS");
  for (const KernelTable* table : all_kernels())
    if (table->supported()) return table;
  return &portable_kernels;
}

std::atomic<const KernelTable*> in_force{nullptr};

}  // namespace

const KernelTable& kernels() {
  const KernelTable* table = in_force.load(std::memory_order_acquire);
  if (table == nullptr) in_force.store(table = automatic(), std::memory_order_release);
  return *table;
}

const Products& products(bool bf16) {
  const KernelTable& table = kernels();
  if (!bf16) return table.products;
#ifdef NORMLAB_BF16_KERNELS
  static const Products* native = native_bf16_products();
  if (native != nullptr && &table == &avx512_kernels) return *native;
#endif
  return table.bf16_products;
}

void choose_kernels(std::string_view name) {
  in_force.store(name.empty() ? automatic() : find(name, "kernels"), std::memory_order_release);
}

}  // namespace normlab
