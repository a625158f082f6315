// Loops over rows that every op shares. Blocks are fixed by shape, so sums never depend on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>

#include "core/parallel.h"
#include "kernels/kernels.h"
#include "normlab/graph.h"

namespace normlab {

inline constexpr int64_t kRowBlock = 64;

// body(first, last) for consecutive blocks of rows, side by side where the caller is not parallel already.
template <class Body>
void for_row_blocks(int64_t rows, const Body& body) {
  const int64_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  parallel_for(blocks, [&](int64_t block) { body(block * kRowBlock, std::min(rows, (block + 1) * kRowBlock)); });
}

// body(row) for every row; where all views are dense and alike, body sees a block of rows as one long row.
// body(n, r): n elements starting at row r of each view.
template <class Body>
void for_elements(const ConstView& like, bool dense, const Body& body) {
  for_row_blocks(like.rows, [&](int64_t first, int64_t last) {
    if (dense) {
      body((last - first) * like.cols, first);
    } else {
      for (int64_t r = first; r < last; ++r) body(like.cols, r);
    }
  });
}

// Of a view's rows that belong to one group; all rows where it is not split.
inline int64_t spacing(const ConstView& v) { return v.groups == 1 ? v.stride : v.cols; }
inline int64_t spacing(const View& v) { return v.groups == 1 ? v.stride : v.cols; }

// body(row, rows) for runs of rows from `first` to `last` that stand `spacing` apart.
template <class Body>
void for_even_rows(const ConstView& like, int64_t first, int64_t last, const Body& body) {
  if (like.groups == 1) return body(first, last - first);
  while (first < last) {
    const int64_t rows = std::min(last, (first / like.groups + 1) * like.groups) - first;
    body(first, rows);
    first += rows;
  }
}

inline ConstView constant(const View& v) { return {v.data, v.rows, v.cols, v.stride, v.groups}; }

// Gradient of x where x enters unchanged: copies or adds dy.
inline void pass_gradient(const Gradient& dx, const ConstView& dy, real factor = 1) {
  for_elements(dy, dy.dense() && dx.view.dense(),
               [&](int64_t n, int64_t r) { kernels().scale(n, factor, dy.row(r), dx.view.row(r), dx.accumulate); });
}

// log sum exp(z) of a row in two parts, the largest element (NaN where there is a NaN, so that divergence shows) and
// log sum exp(z - largest). Added to a logit of 1e4, the second would lose the digits that gradients are made of.
struct LogSumExp {
  double largest, rest;
};
inline LogSumExp log_sum_exp(int64_t n, const real* z) {
  double largest = static_cast<double>(z[0]), sum = 0;
  for (int64_t j = 1; j < n; ++j) {
    if (!(static_cast<double>(z[j]) <= largest)) largest = static_cast<double>(z[j]);
  }
  for (int64_t j = 0; j < n; ++j) sum += std::exp(static_cast<double>(z[j]) - largest);
  return {largest, std::log(sum)};
}

// sums[j] (+)= sum over rows of x[r][j] y[r][j] (y null: of x[r][j]), rows in order, in double; `columns` at a time in
// parallel.
void column_sums(const ConstView& x, const ConstView* y, real* sums, bool accumulate);

}  // namespace normlab
