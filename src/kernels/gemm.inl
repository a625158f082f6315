// Matrix products. One tile of c stays in registers while k runs from first to last; a is read one number at a time, b
// one row of the tile at a time. No blocking of k: the sum of an element is one chain in every table, whatever the
// tile.

// Saved activations come from far, in rows that lie pages apart, which no processor fetches ahead by itself.
constexpr int64_t kPrefetch = 32;  // rows
constexpr int64_t kStrip = 64;  // rows of a panel that are read over and over: they stay in the first-level cache

constexpr int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

// Panels [n / kTileColumns][k][kTileColumns], the last one filled up with zeros.
int64_t packed_size(int64_t k, int64_t n) { return (n + kTileColumns - 1) / kTileColumns * kTileColumns * k; }

// Rows of b [k][columns] as one panel.
template <unsigned Columns>
inline void pack_panel(int64_t k, int64_t columns, const real* b, int64_t ldb, real* panel) {
  for (int64_t i = 0; i < k; ++i, b += ldb, panel += Columns) {
    for (unsigned j = 0; j < Columns; j += 16) __builtin_prefetch(b + kPrefetch * ldb + j);
    if (columns == Columns) {
      __builtin_memcpy(panel, b, Columns * sizeof(real));
    } else {
      for (int64_t j = 0; j < Columns; ++j) panel[j] = j < columns ? b[j] : 0;
    }
  }
}

void pack(int64_t k, int64_t n, const real* b, int64_t ldb, real* packed) {
  for (int64_t first = 0; first < n; first += kTileColumns, packed += k * kTileColumns)
    pack_panel<kTileColumns>(k, smaller(kTileColumns, n - first), b + first, ldb, packed);
}

// to[j][i] = from[i][j] for `rows` rows of `columns` numbers, 4 x 4 at a time.
inline void transpose(int64_t rows, int64_t columns, const real* from, int64_t from_stride, real* to,
                      int64_t to_stride) {
  const int64_t whole_rows = rows - rows % 4, whole_columns = columns - columns % 4;
  for (int64_t i = 0; i < whole_rows; i += 4) {
    for (int64_t j = 0; j < whole_columns; j += 4)
      transpose_4x4(from + i * from_stride + j, from_stride, to + j * to_stride + i, to_stride);
    for (int64_t j = whole_columns; j < columns; ++j)
      for (int64_t r = i; r < i + 4; ++r) to[j * to_stride + r] = from[r * from_stride + j];
  }
  for (int64_t i = whole_rows; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * to_stride + i] = from[i * from_stride + j];
}

void pack_transposed(int64_t k, int64_t n, const real* b, int64_t ldb, real* packed) {
  for (int64_t first = 0; first < n; first += kTileColumns, packed += k * kTileColumns) {
    const int64_t columns = smaller(kTileColumns, n - first);
    if (columns < kTileColumns)
      for (int64_t i = 0; i < k * kTileColumns; ++i) packed[i] = 0;
    transpose(columns, k, b + first * ldb, ldb, packed, kTileColumns);
  }
}

inline Vector load(const real* from) {
  Vector v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

inline void store(real* to, Vector v) { __builtin_memcpy(to, &v, sizeof v); }

// What the tiles of one product share. b points to the panel, whose rows are kTileColumns (or half of it) apart.
struct Product {
  int64_t k, lda, panel_width, ldc;
  bool accumulate;
};

// How a lies in memory: [rows][k] with lda between rows; the same with 16 between rows, which the addresses then need not
// count; or [k][rows].
enum class Layout { rows, rows_of_16, columns };

template <Layout L>
inline int64_t place_in_a(int64_t row, int64_t i, int64_t lda) {
  if constexpr (L == Layout::columns) return i * lda + row;
  return row * (L == Layout::rows_of_16 ? 16 : lda) + i;
}

// c (+)= a b + bias for Rows rows and the first `columns` <= Columns columns.
template <unsigned Rows, unsigned Columns, Layout L>
[[gnu::noinline]] void tile(const Product& p, const real* a, const real* b, int64_t columns, real* c,
                            const real* bias) {
  constexpr unsigned kVectors = Columns / kVector;
  const int64_t k = p.k, lda = p.lda, width = p.panel_width, ldc = p.ldc;
  if (p.accumulate)  // gradients come from far: fetch them while the products run
    for (unsigned r = 0; r < Rows; ++r) __builtin_prefetch(c + r * ldc, 1);
  Vector total[Rows][kVectors] = {};
  for (int64_t i = 0; i < k; ++i) {
    Vector b_row[kVectors];
#pragma GCC unroll 16
    for (unsigned v = 0; v < kVectors; ++v) b_row[v] = load(b + i * width + v * kVector);
#pragma GCC unroll 16
    for (unsigned r = 0; r < Rows; ++r) {
      const Vector a_now = a[place_in_a<L>(r, i, lda)] - Vector{};
#pragma GCC unroll 16
      for (unsigned v = 0; v < kVectors; ++v) total[r][v] = multiply_add(a_now, b_row[v], total[r][v]);
    }
  }
  if (columns == Columns) {
#pragma GCC unroll 16
    for (unsigned r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
      for (unsigned v = 0; v < kVectors; ++v) {
        const unsigned first = v * kVector;
        Vector value = total[r][v];
        if (bias != nullptr) value += load(bias + first);
        if (p.accumulate) value = load(c + r * ldc + first) + value;
        store(c + r * ldc + first, value);
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (unsigned r = 0; r < Rows; ++r) {
    real row[Columns];
#pragma GCC unroll 16
    for (unsigned v = 0; v < kVectors; ++v) store(row + v * kVector, total[r][v]);
    for (int64_t j = 0; j < columns; ++j) {
      const real value = bias != nullptr ? row[j] + bias[j] : row[j];
      c[r * ldc + j] = p.accumulate ? c[r * ldc + j] + value : value;
    }
  }
}

template <unsigned Rows, unsigned Columns, Layout L>
inline void tile_of(int64_t rows, const Product& p, const real* a, const real* b, int64_t columns, real* c,
                    const real* bias) {
  if constexpr (Rows > 1)
    if (rows < Rows) return tile_of<Rows - 1, Columns, L>(rows, p, a, b, columns, c, bias);
  tile<Rows, Columns, L>(p, a, b, columns, c, bias);
}

// Calls block(first row, rows) for blocks that differ by one row at most: 64 rows are 13 + 13 + 13 + 13 + 12, as
// 14 + 14 + 14 + 14 + 8 would end slowly.
template <unsigned Most = kTileRows, class Block>
inline void for_row_blocks(int64_t m, const Block& block) {
  const int64_t blocks = (m + Most - 1) / Most;
  for (int64_t i = 0, row = 0; i < blocks; ++i) {
    const int64_t rows = m / blocks + (i < m % blocks ? 1 : 0);
    block(row, rows);
    row += rows;
  }
}

int64_t no_scratch(int64_t /*m*/, int64_t /*k*/) { return 0; }

// The sum of an element is one chain from the first k to the last.
void gemm(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* packed, real* c, int64_t ldc,
          const real* bias, bool accumulate, real* /*scratch*/) {
  const Product p{k, lda, kTileColumns, ldc, accumulate};
  for_row_blocks(m, [&](int64_t row, int64_t rows) {
    for (int64_t first = 0; first < n; first += kTileColumns) {
      const int64_t columns = smaller(kTileColumns, n - first);
      const real* panel = packed + first * k;
      const real* panel_bias = bias != nullptr ? bias + first : nullptr;
      real* out = c + row * ldc + first;
      if (columns > kTileColumns / 2)
        tile_of<kTileRows, kTileColumns, Layout::rows>(rows, p, a + row * lda, panel, columns, out, panel_bias);
      else
        tile_of<kTileRows, kTileColumns / 2, Layout::rows>(rows, p, a + row * lda, panel, columns, out, panel_bias);
    }
  });
}

// One panel of b in a strip of k, copied so that its rows lie side by side, times all rows of a.
template <unsigned Columns>
inline void strip_panel(int64_t m, int64_t columns, const real* a, const real* b, int64_t ldb, real* c, Product p) {
  real panel[kStrip * Columns];
  pack_panel<Columns>(p.k, columns, b, ldb, panel);
  p.panel_width = Columns;
  for_row_blocks(m, [&](int64_t row, int64_t rows) {
    tile_of<kTileRows, Columns, Layout::columns>(rows, p, a + row, panel, columns, c + row * p.ldc, nullptr);
  });
}

// k goes in strips of 64, each summed from first to last and then added to c. Longer strips touch more memory pages
// than the processor remembers, one per row of a.
void gemm_transposed(int64_t m, int64_t n, int64_t k, const real* a, int64_t lda, const real* b, int64_t ldb, real* c,
                     int64_t ldc, bool accumulate) {
  for (int64_t strip = 0; strip < k; strip += kStrip) {
    const Product p{smaller(kStrip, k - strip), lda, 0, ldc, accumulate || strip > 0};
    if (strip + kStrip < k)
      for (int64_t i = 0; i < p.k; ++i)
        for (int64_t j = 0; j < m; j += 16) __builtin_prefetch(a + (strip + kStrip + i) * lda + j);
    for (int64_t first = 0; first < n; first += kTileColumns) {
      const int64_t columns = smaller(kTileColumns, n - first);
      const real* b_strip = b + strip * ldb + first;
      if (columns > kTileColumns / 2)
        strip_panel<kTileColumns>(m, columns, a + strip * lda, b_strip, ldb, c + first, p);
      else
        strip_panel<kTileColumns / 2>(m, columns, a + strip * lda, b_strip, ldb, c + first, p);
    }
  }
}
