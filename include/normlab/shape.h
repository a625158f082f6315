// Shapes and row-wise views of memory.
#pragma once

#include <array>
#include <initializer_list>
#include <string>

#include "normlab/real.h"

namespace normlab {

// Up to four dimensions, outermost first: (B, T, C). The last one runs along a row in memory.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<std::size_t>(i)]; }
  int64_t cols() const { return rank_ == 0 ? 1 : dims_[static_cast<std::size_t>(rank_ - 1)]; }
  int64_t rows() const { return count() / cols(); }
  int64_t count() const;
  std::string text() const;  // "(16, 64, 256)"
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, 4> dims_{};
  int rank_ = 0;
};

// Rows of `cols` elements. Row r starts at data + (r / groups) * stride + (r % groups) * cols: with groups = 1 a plain
// matrix, with groups = H the H heads of (B, T, H * dh) seen as rows of dh, without moving anything.
template <class T>
struct BasicView {
  T* data = nullptr;
  int64_t rows = 0, cols = 0, stride = 0, groups = 1;

  T* row(int64_t r) const {
    return groups == 1 ? data + r * stride : data + (r / groups) * stride + (r % groups) * cols;
  }
  // True where all rows follow each other without a gap.
  bool dense() const { return stride == cols * groups; }
};
using View = BasicView<real>;
using ConstView = BasicView<const real>;

}  // namespace normlab
