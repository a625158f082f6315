// Parameters and states of a model: declared while the graph is built, stored in flat slabs, drawn from a seed.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "normlab/real.h"
#include "normlab/shape.h"

namespace normlab {

// What a matrix does in the decoder; inits and placements choose standard deviations by it.
enum class Role {
  token_embedding,
  position_embedding,
  query,
  key,
  value,
  attention_out,
  ffn_up,
  ffn_gate,
  ffn_down,
  head,
  vector
};

const char* role_name(Role role);
// The matrices that a branch's output is linear in: all of a layer but queries and keys. Depth-dependent inits scale
// these.
bool in_value_path(Role role);

// Where a truncated normal distribution ends, and its standard deviation, both in standard deviations of the whole one:
// sqrt(1 - 2 c phi(c) / (2 Phi(c) - 1)) at c = 3, phi the density and Phi the distribution function.
constexpr double kTruncation = 3, kTruncatedStd = 0.9865783925581086;

struct ParamSpec {
  std::string name;  // "layers.3.ffn.up.weight"
  Shape shape;       // linear weights are (out, in)
  Role role = Role::vector;
  // truncated: normal, but values beyond kTruncation standard deviations of the whole distribution are drawn again.
  enum class Fill { constant, normal, uniform, truncated } fill = Fill::constant;
  double mean = 0;        // of the initial values; the value itself for a constant
  double std = 0;         // standard deviation of the initial values, after truncation
  bool trainable = true;  // false: a state such as a running mean; saved and restored, never updated by the optimizer

  // Decoupled weight decay applies to matrices only: never to gains, biases and other vectors.
  bool decays() const { return trainable && role != Role::vector; }
};

// Cache-line aligned zeroed memory.
class Slab {
 public:
  Slab() = default;
  explicit Slab(int64_t count);
  ~Slab();
  Slab(Slab&& other) noexcept;
  Slab& operator=(Slab&& other) noexcept;
  real* data() { return data_; }
  const real* data() const { return data_; }
  int64_t size() const { return size_; }
  void fill(real value);

 private:
  real* data_ = nullptr;
  int64_t size_ = 0;
};

// All parameters of one model. Values lie in declaration order, dense, each starting on a cache line; trainable ones
// and states share the slab.
class ParamStore {
 public:
  // Declares a parameter and returns its index. Declaring a name again returns the same index if the shape agrees
  // (a second graph of the same model), else throws ShapeError. New names are refused once the store is allocated.
  int declare(const ParamSpec& spec);
  int find(std::string_view name) const;  // -1 where absent
  int count() const { return static_cast<int>(specs_.size()); }
  const ParamSpec& spec(int index) const { return specs_[static_cast<std::size_t>(index)]; }
  int64_t offset(int index) const { return offsets_[static_cast<std::size_t>(index)]; }
  int64_t total() const { return total_; }  // elements of the slab, padding included
  int64_t trainable_elements() const;       // what people call the number of parameters

  void allocate();  // once, after the first graph is built
  bool allocated() const { return values_.size() > 0; }
  // Fills every parameter from its spec: element e of parameter `name` is drawn by (seed, "init/" name, e), so no
  // parameter's values depend on which others exist.
  void initialize(uint64_t seed);

  real* value(int index) { return values_.data() + offset(index); }
  const real* value(int index) const { return values_.data() + offset(index); }

 private:
  std::vector<ParamSpec> specs_;
  std::vector<int64_t> offsets_;
  std::unordered_map<std::string, int> by_name_;
  int64_t total_ = 0;
  Slab values_;
};

}  // namespace normlab
