// Causal attention of one head. Scores lie transposed, [key][16 queries]: a query is a lane, so its maximum, its sum and
// its mask are plain vector operations, nothing is summed across a vector, and every product reads its operands as they
// lie. Blocks above the diagonal are never computed. Sums over keys are four interleaved chains.

constexpr int64_t kQueries = 16;  // of a block
constexpr unsigned kNarrow = kTileColumns < 16 ? kTileColumns : 16;

constexpr int64_t padded_to_block(int64_t n) { return (n + kQueries - 1) / kQueries * kQueries; }

// Distance between the columns of x: off the powers of two, whose lines would push each other out of the cache.
constexpr int64_t column_stride(int64_t rows) { return padded_to_block(rows) + 16; }

// c (+)= a b where b [k][n] is not packed: its rows are ldb apart and readable up to the next multiple of 16.
template <Layout L>
inline void plain_product(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* b, int64_t ldb,
                          real* c, int64_t ldc, bool accumulate) {
  const Product p{k, lda, ldb, ldc, accumulate};
  int64_t first = 0;
  if constexpr (kTileColumns > kNarrow) {
    for (; n - first > kNarrow; first += kTileColumns)
      for_row_blocks(m, [&](int64_t row, int64_t rows) {
        tile_of<kTileRows, kTileColumns, L>(rows, p, a + place_in_a<L>(row, 0, lda), b + first,
                                            smaller(kTileColumns, n - first), c + row * ldc + first, nullptr);
      });
  }
  for (; first < n; first += kNarrow)
    for_row_blocks<kNarrowTileRows>(m, [&](int64_t row, int64_t rows) {
      tile_of<kNarrowTileRows, kNarrow, L>(rows, p, a + place_in_a<L>(row, 0, lda), b + first,
                                           smaller(kNarrow, n - first), c + row * ldc + first, nullptr);
    });
}

// x as rows that are readable up to the next multiple of 16: itself where that is so already, else a copy in `to`.
struct Rows {
  const real* data;
  int64_t stride;
};

inline Rows padded_rows(int64_t rows, int64_t columns, const real* x, int64_t stride, real* to) {
  const int64_t width = padded_to_block(columns);
  if (columns == width) return {x, stride};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) to[r * width + j] = x[r * stride + j];
    for (int64_t j = columns; j < width; ++j) to[r * width + j] = 0;
  }
  return {to, width};
}

// Rows of x as columns, to[column][row], their number filled up with zeros to a multiple of 16.
inline void copy_as_columns(int64_t rows, int64_t columns, const real* x, int64_t stride, real* to) {
  const int64_t apart = column_stride(rows);
  for (int64_t i = 0; i < columns; ++i)
    for (int64_t r = rows; r < padded_to_block(rows); ++r) to[i * apart + r] = 0;
  transpose(rows, columns, x, stride, to, apart);
}

// Calls chain(c, row) for four interleaved chains c over the rows of a block of scores; their number is a multiple of 16.
template <class Chain>
inline void four_chains(int64_t rows, const Chain& chain) {
  for (int64_t j = 0; j < rows; j += 4) {
#pragma GCC unroll 4
    for (int64_t c = 0; c < 4; ++c) chain(c, j + c);
  }
}

constexpr unsigned kLaneVectors = kQueries / kVector;

// In place: the probabilities of 16 queries over `keys` scores each, those above the diagonal 0. The last 16 rows are
// the diagonal block. A query whose scores are all -inf gets zeros, one that meets a NaN becomes NaN.
[[gnu::flatten]] void softmax_of_block(int64_t keys, real scale, real* s) {
  real* diagonal = s + (keys - kQueries) * kQueries;
  for (int32_t j = 1; j < kQueries; ++j) {
    real* row = diagonal + j * kQueries;
#pragma omp simd
    for (int32_t l = 0; l < kQueries; ++l) row[l] = l < j ? -kInfinity : row[l];
  }
  real most[kQueries], share[kQueries];
  for (unsigned v = 0; v < kLaneVectors; ++v) {
    const real* from = s + v * kVector;
    const Vector lowest = -kInfinity - Vector{};
    Vector chain[4] = {lowest, lowest, lowest, lowest};
    four_chains(keys, [&](int64_t c, int64_t j) {
      const Vector x = load(from + j * kQueries);
      chain[c] = x > chain[c] ? x : chain[c];
    });
    chain[0] = chain[1] > chain[0] ? chain[1] : chain[0];
    chain[2] = chain[3] > chain[2] ? chain[3] : chain[2];
    chain[0] = chain[2] > chain[0] ? chain[2] : chain[0];
    store(most + v * kVector, chain[0] == lowest ? Vector{} : chain[0]);
  }
  for (int64_t j = 0; j < keys; ++j) {
    real* row = s + j * kQueries;
#pragma omp simd
    for (int64_t l = 0; l < kQueries; ++l) row[l] = exp_of_not_positive((row[l] - most[l]) * scale);
  }
  for (unsigned v = 0; v < kLaneVectors; ++v) {
    const real* from = s + v * kVector;
    Vector chain[4] = {};
    four_chains(keys, [&](int64_t c, int64_t j) { chain[c] += load(from + j * kQueries); });
    const Vector sum = (chain[0] + chain[1]) + (chain[2] + chain[3]);
    store(share + v * kVector, sum == Vector{} ? Vector{} : 1 / sum);
  }
  for (int64_t j = 0; j < keys; ++j) {
    real* row = s + j * kQueries;
#pragma omp simd
    for (int64_t l = 0; l < kQueries; ++l) row[l] *= share[l];
  }
}

// ds = p (dp - sum over keys of p dp) scale, in place of dp.
inline void softmax_of_block_backward(int64_t keys, real scale, const real* p, real* ds) {
  real mean[kQueries];
  for (unsigned v = 0; v < kLaneVectors; ++v) {
    const int64_t at = v * kVector;
    Vector chain[4] = {};
    four_chains(keys, [&](int64_t c, int64_t j) {
      chain[c] = multiply_add(load(p + j * kQueries + at), load(ds + j * kQueries + at), chain[c]);
    });
    store(mean + at, (chain[0] + chain[1]) + (chain[2] + chain[3]));
  }
  for (int64_t j = 0; j < keys; ++j) {
    const real* weight = p + j * kQueries;
    real* row = ds + j * kQueries;
#pragma omp simd
    for (int64_t l = 0; l < kQueries; ++l) row[l] = weight[l] * (row[l] - mean[l]) * scale;
  }
}

// From products of queries and keys, in their place: the scores under a cap.
[[gnu::flatten]] void cap_scores(int64_t n, real scale, real cap, real* s) {
  const real factor = scale / cap;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) s[i] = cap * tanh_of(factor * s[i]);
}

// The same products to the derivatives of those scores with respect to them.
[[gnu::flatten]] void slopes_of_cap(int64_t n, real scale, real cap, real* s) {
  const real factor = scale / cap;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) s[i] = scale * Tanh::of(factor * s[i]).slope;
}

// One block of 16 queries: its place in the head. Keys are counted in whole blocks; those that exist are `present`.
struct QueryBlock {
  QueryBlock(int64_t time, int64_t number)
      : first(number * kQueries),
        queries(smaller(kQueries, time - first)),
        keys(first + kQueries),
        present(smaller(time, keys)),
        offset(kQueries * kQueries * (number * (number + 1) / 2)) {}
  int64_t first, queries, keys, present, offset;
};

int64_t attention_saved(int64_t time) {
  const int64_t blocks = padded_to_block(time) / kQueries;
  return kQueries * kQueries * (blocks * (blocks + 1) / 2);
}

int64_t attention_scratch(int64_t time, int64_t width) {
  return column_stride(time) * (7 * padded_to_block(width) + 3 * kQueries);
}

// The scratch of one head, cut up. Lengths are padded to multiples of 16.
struct AttentionScratch {
  AttentionScratch(const AttentionHead& h, real* at) : t(column_stride(h.time)) {
    const auto cut = [&at](int64_t size) { return (at += size) - size; };
    const int64_t size = t * padded_to_block(h.width);
    q_columns = cut(size), k_columns = cut(size), v_columns = cut(size), dout_columns = cut(size);
    q_rows = cut(size), kv_rows = cut(size), dout_rows = cut(size);
    ds = cut(t * kQueries), p = cut(t * kQueries), slope = cut(t * kQueries);
  }
  int64_t t;
  real *q_columns, *k_columns, *v_columns, *dout_columns, *q_rows, *kv_rows, *dout_rows, *ds, *p, *slope;
};

// scores[key][query of the block] = x[key] . y[query] from both as columns.
inline void scores_of_block(const QueryBlock& block, int64_t width, int64_t t, const real* x, const real* y,
                            real* scores) {
  plain_product<Layout::columns>(block.keys, kQueries, width, x, t, y + block.first, t, scores, kQueries, false);
}

void probabilities_of_block(const AttentionHead& h, const AttentionScratch& s, const QueryBlock& block, real* p) {
  scores_of_block(block, h.width, s.t, s.k_columns, s.q_columns, p);
  const bool capped = h.cap > 0;
  if (capped) cap_scores(block.present * kQueries, h.scale, h.cap, p);
  for (int64_t i = block.present * kQueries; i < block.keys * kQueries; ++i) p[i] = -kInfinity;
  softmax_of_block(block.keys, capped ? 1 : h.scale, p);
  if (h.bf16) round_bf16(block.keys * kQueries, p);
}

// ds from the gradient dp of the probabilities, in its place: with respect to the products of queries and keys. Under a
// cap the products are computed again: to keep them would double what is saved.
void scores_of_block_backward(const AttentionHead& h, const AttentionScratch& s, const QueryBlock& block, const real* p,
                              real* ds) {
  if (h.cap > 0) {
    const int64_t n = block.keys * kQueries;
    scores_of_block(block, h.width, s.t, s.k_columns, s.q_columns, s.slope);
    slopes_of_cap(n, h.scale, h.cap, s.slope);
    softmax_of_block_backward(block.keys, 1, p, ds);
    multiply(n, ds, s.slope, ds, false);
  } else {
    softmax_of_block_backward(block.keys, h.scale, p, ds);
  }
}

void attention(const AttentionHead& h, real* out, int64_t out_stride, real* p, real* scratch) {
  const AttentionScratch s(h, scratch);
  copy_as_columns(h.time, h.width, h.q, h.q_stride, s.q_columns);
  copy_as_columns(h.time, h.width, h.k, h.k_stride, s.k_columns);
  const Rows v = padded_rows(h.time, h.width, h.v, h.v_stride, s.kv_rows);
  for (int64_t b = 0; b * kQueries < h.time; ++b) {
    const QueryBlock block(h.time, b);
    real* p_block = p != nullptr ? p + block.offset : s.p;
    probabilities_of_block(h, s, block, p_block);
    plain_product<Layout::columns>(block.queries, h.width, block.present, p_block, kQueries, v.data, v.stride,
                                   out + block.first * out_stride, out_stride, false);
  }
}

// c[key] (+)= weights[key][query] x[query]: what one block of queries gives to the gradient of its keys, or values. The
// keys of the diagonal block are met here for the first time.
inline void add_to_keys(const QueryBlock& block, int64_t width, const real* weights, const Rows& x, real* c,
                        int64_t stride, bool accumulate) {
  const real* from = x.data + block.first * x.stride;
  plain_product<Layout::rows_of_16>(block.first, width, block.queries, weights, kQueries, from, x.stride, c, stride,
                                    true);
  plain_product<Layout::rows_of_16>(block.present - block.first, width, block.queries,
                                    weights + block.first * kQueries, kQueries, from, x.stride,
                                    c + block.first * stride, stride, accumulate);
}

void attention_backward(const AttentionHead& h, const AttentionGradient& g, const real* p, real* scratch) {
  const AttentionScratch s(h, scratch);
  if (p == nullptr || h.cap > 0) {
    copy_as_columns(h.time, h.width, h.q, h.q_stride, s.q_columns);
    copy_as_columns(h.time, h.width, h.k, h.k_stride, s.k_columns);
  }
  copy_as_columns(h.time, h.width, h.v, h.v_stride, s.v_columns);
  copy_as_columns(h.time, h.width, g.dout, g.dout_stride, s.dout_columns);
  const Rows q = padded_rows(h.time, h.width, h.q, h.q_stride, s.q_rows);
  const Rows k = padded_rows(h.time, h.width, h.k, h.k_stride, s.kv_rows);
  const Rows dout = padded_rows(h.time, h.width, g.dout, g.dout_stride, s.dout_rows);
  for (int64_t b = 0; b * kQueries < h.time; ++b) {
    const QueryBlock block(h.time, b);
    const real* p_block = p != nullptr ? p + block.offset : s.p;
    if (p == nullptr) probabilities_of_block(h, s, block, s.p);
    if (g.dq != nullptr || g.dk != nullptr) {
      scores_of_block(block, h.width, s.t, s.v_columns, s.dout_columns, s.ds);
      scores_of_block_backward(h, s, block, p_block, s.ds);
      if (h.bf16) round_bf16(block.keys * kQueries, s.ds);
    }
    // In this order: where q, k and v are one tensor, so are their gradients, and the first writer overwrites.
    if (g.dq != nullptr)
      plain_product<Layout::columns>(block.queries, h.width, block.present, s.ds, kQueries, k.data, k.stride,
                                     g.dq + block.first * g.dq_stride, g.dq_stride, g.add_dq);
    if (g.dk != nullptr) add_to_keys(block, h.width, s.ds, q, g.dk, g.dk_stride, g.add_dk);
    if (g.dv != nullptr) add_to_keys(block, h.width, p_block, dout, g.dv, g.dv_stride, g.add_dv);
  }
}
