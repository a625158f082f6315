#include "normlab/shape.h"

#include "core/text.h"

namespace normlab {

Shape::Shape(std::initializer_list<int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  std::size_t i = 0;
  for (const int64_t d : dims) dims_[i++] = d;
}

int64_t Shape::count() const {
  int64_t product = 1;
  for (int i = 0; i < rank_; ++i) product *= (*this)[i];
  return product;
}

std::string Shape::text() const {
  std::string out = "(";
  for (int i = 0; i < rank_; ++i) out += str(i > 0 ? ", " : "", (*this)[i]);
  return out + ")";
}

}  // namespace normlab
