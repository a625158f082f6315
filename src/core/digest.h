// FNV-1a, 64 bit (Fowler, Noll & Vo; draft-eastlake-fnv): notices damage and edits, not malice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace normlab {

inline constexpr std::uint64_t kNoBytes = 14695981039346656037ull;  // the digest of nothing

// The digest of what `hash` stands for followed by `data`.
inline std::uint64_t fnv1a(std::string_view data, std::uint64_t hash = kNoBytes) {
  for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// 16 hexadecimal digits.
inline std::string hex(std::uint64_t value) {
  std::string out(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) out[i] = "0123456789abcdef"[value & 15];
  return out;
}

}  // namespace normlab
