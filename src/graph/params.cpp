#include "normlab/params.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "core/memory.h"
#include "core/parallel.h"
#include "core/rng.h"
#include "core/text.h"
#include "normlab/error.h"

namespace normlab {

namespace {

constexpr int64_t kLine = 64 / static_cast<int64_t>(sizeof(real));  // elements of a cache line

int64_t rounded_to_line(int64_t count) { return (count + kLine - 1) / kLine * kLine; }

std::size_t bytes_of(int64_t count) { return static_cast<std::size_t>(count) * sizeof(real); }

}  // namespace

const char* role_name(Role role) {
  switch (role) {
    case Role::token_embedding: return "token embedding";
    case Role::position_embedding: return "position embedding";
    case Role::query: return "query";
    case Role::key: return "key";
    case Role::value: return "value";
    case Role::attention_out: return "attention out";
    case Role::ffn_up: return "ffn up";
    case Role::ffn_gate: return "ffn gate";
    case Role::ffn_down: return "ffn down";
    case Role::head: return "head";
    case Role::vector: return "vector";
  }
  return "";
}

bool in_value_path(Role role) {
  return role == Role::value || role == Role::attention_out || role == Role::ffn_up || role == Role::ffn_gate ||
         role == Role::ffn_down;
}

Slab::Slab(int64_t count) : size_(count) {
  if (count == 0) return;
  data_ = static_cast<real*>(allocate_zeros(bytes_of(count)));
  if (data_ == nullptr) {
    throw Error(str("out of memory: cannot allocate ", bytes(static_cast<double>(bytes_of(count)))));
  }
}

Slab::~Slab() { free_zeros(data_, bytes_of(size_)); }

Slab::Slab(Slab&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Slab& Slab::operator=(Slab&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void Slab::fill(real value) { std::fill(data_, data_ + size_, value); }

int ParamStore::declare(const ParamSpec& spec) {
  if (const int known = find(spec.name); known >= 0) {
    if (this->spec(known).shape != spec.shape) {
      throw ShapeError(str("parameter ", spec.name, " is declared as ", spec.shape.text(), " and as ",
                           this->spec(known).shape.text()));
    }
    return known;
  }
  if (allocated()) throw ShapeError(str("parameter ", spec.name, " is not part of this model"));
  const int index = count();
  by_name_.emplace(spec.name, index);
  specs_.push_back(spec);
  offsets_.push_back(total_);
  total_ += rounded_to_line(spec.shape.count());
  return index;
}

int ParamStore::find(std::string_view name) const {
  const auto at = by_name_.find(std::string(name));
  return at == by_name_.end() ? -1 : at->second;
}

int64_t ParamStore::trainable_elements() const {
  int64_t sum = 0;
  for (const ParamSpec& spec : specs_) sum += spec.trainable ? spec.shape.count() : 0;
  return sum;
}

void ParamStore::allocate() {
  if (!allocated()) values_ = Slab(total_);
}

void ParamStore::initialize(uint64_t seed) {
  parallel_for(count(), [&](int64_t i) {
    const auto index = static_cast<int>(i);
    const ParamSpec& p = spec(index);
    const uint32_t stream = stream_id("init/" + p.name);
    const Rng rng(seed, stream);
    real* values = value(index);
    const int64_t n = p.shape.count();
    switch (p.fill) {
      case ParamSpec::Fill::constant: std::fill(values, values + n, static_cast<real>(p.mean)); break;
      case ParamSpec::Fill::normal:
        for (int64_t e = 0; e < n; ++e) {
          values[e] = static_cast<real>(p.mean + p.std * rng.normal(static_cast<uint64_t>(e)));
        }
        break;
      case ParamSpec::Fill::uniform:  // variance of U(-a, a) is a^2 / 3
        for (int64_t e = 0; e < n; ++e) {
          values[e] =
              static_cast<real>(p.mean + p.std * std::sqrt(3.0) * (2 * rng.uniform(static_cast<uint64_t>(e)) - 1));
        }
        break;
      case ParamSpec::Fill::truncated:  // try number k of an element is draw k of its stream
        for (int64_t e = 0; e < n; ++e) {
          double z = rng.normal(static_cast<uint64_t>(e));
          for (uint64_t k = 1; std::abs(z) > kTruncation; ++k)
            z = Rng(seed, stream, k).normal(static_cast<uint64_t>(e));
          values[e] = static_cast<real>(p.mean + p.std / kTruncatedStd * z);
        }
        break;
    }
  });
}

}  // namespace normlab
