// Kernels on warm memory: matrix products of the layers' shapes and elementwise functions. With several threads each
// works on its own memory, as the slots of a training step do.
#include "core/text.h"
#include "kernels/kernels.h"
#include "lab/bench.h"

namespace normlab {

namespace {

// The matrices (out, in) of a layer at width 64 and 256, and the rows of 1 to 16 sequences.
struct LayerShape {
  int64_t out, in;
};
constexpr LayerShape kLayerShapes[] = {{64, 64}, {192, 64}, {256, 64}, {64, 256}, {768, 256}, {1024, 256}, {256, 1024}};
constexpr int64_t kRows[] = {64, 128, 256, 512, 1024};

enum class Product { forward, input_gradient, weight_gradient };
constexpr struct {
  Product product;
  const char* name;
} kProducts[] = {{Product::forward, "forward"}, {Product::input_gradient, "dX"}, {Product::weight_gradient, "dW"}};

// Long rows stand 16 elements apart, as the graph lays out activations.
constexpr int64_t stride_of(int64_t cols) { return cols >= 256 ? cols + 16 : cols; }

Slab random_slab(int64_t count) {
  Slab slab(count);
  for (int64_t i = 0; i < count; ++i) slab.data()[i] = bench_number(i);
  return slab;
}

// One linear layer: y = x W^T + b with its two gradients.
struct Layer {
  Layer(const LayerShape& s, int64_t rows_)
      : out(s.out),
        in(s.in),
        rows(rows_),
        x(random_slab(rows * stride_of(in))),
        y(random_slab(rows * stride_of(out))),
        weight(random_slab(out * in)),
        bias(out),
        forward_panels(kernels().products.packed_size(in, out)),
        backward_panels(kernels().products.packed_size(out, in)) {
    kernels().products.pack_transposed(in, out, weight.data(), in, forward_panels.data());
    kernels().products.pack(out, in, weight.data(), in, backward_panels.data());
  }

  void run(Product product) {
    switch (product) {
      case Product::forward:
        return kernels().products.gemm(rows, out, in, x.data(), stride_of(in), forward_panels.data(), y.data(),
                                       stride_of(out), bias.data(), false, nullptr);
      case Product::input_gradient:
        return kernels().products.gemm(rows, in, out, y.data(), stride_of(out), backward_panels.data(), x.data(),
                                       stride_of(in), nullptr, false, nullptr);
      case Product::weight_gradient:
        return kernels().products.gemm_transposed(out, in, rows, y.data(), stride_of(out), x.data(), stride_of(in),
                                                  weight.data(), in, true);
    }
  }

  int64_t out, in, rows;
  Slab x, y, weight, bias, forward_panels, backward_panels;
};

Pair prepare_gemm(Product product, const LayerShape& shape, int64_t rows, int threads) {
  const auto layers = std::make_shared<std::vector<Layer>>();
  for (int i = 0; i < threads; ++i) layers->emplace_back(shape, rows);
  const auto run = [=](int64_t thread) { (*layers)[static_cast<std::size_t>(thread)].run(product); };
  return {{on_threads(threads, run), gemm_flops(rows, shape.out, shape.in) * threads, "GFLOP/s", 1e9},
          "FMA peak",
          fma_peak(threads)};
}

// ---- elementwise ----

constexpr struct {
  const char* name;
  Unary f;
} kFunctions[] = {{"exp", Unary::exp}, {"tanh", Unary::tanh}, {"gelu", Unary::gelu}};
constexpr struct {
  const char* name;
  int64_t elements;
} kSizes[] = {{"[64x256]", 64 * 256}, {"[4096x256]", 4096 * 256}};

Pair prepare_elementwise(Unary f, bool with_slope, int64_t elements, int threads) {
  struct Arrays {
    Slab x, y, z;
  };
  const auto arrays = std::make_shared<Arrays>(Arrays{random_slab(elements), random_slab(elements), Slab(elements)});
  const int64_t part = elements / threads;
  const double bytes = static_cast<double>(sizeof(real)) * (with_slope ? 3 : 2);  // per element
  const auto run = [=](int64_t thread) {
    const int64_t first = thread * part;
    kernels().unary(f, part, arrays->x.data() + first, arrays->z.data() + first,
                    with_slope ? arrays->y.data() + first : nullptr);
  };
  return {{on_threads(threads, run), bytes * static_cast<double>(part * threads), "Gel/s", 1e9 * bytes},
          "copy",
          copy_bandwidth(elements * static_cast<int64_t>(sizeof(real)), threads)};
}

}  // namespace

double gemm_flops(int64_t rows, int64_t out, int64_t in) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(out * in);
}

std::vector<Measurement> gemm_measurements() {
  std::vector<Measurement> list;
  for (const auto& p : kProducts) {
    for (const LayerShape& shape : kLayerShapes) {
      for (const int64_t rows : kRows) {
        list.push_back({str(p.name, " ", shape.out, "x", shape.in, ", ", rows, " rows"), Measurement::Threads::each,
                        [=](int threads) { return prepare_gemm(p.product, shape, rows, threads); }});
      }
    }
  }
  return list;
}

std::vector<Measurement> elementwise_measurements() {
  std::vector<Measurement> list;
  for (const auto& size : kSizes) {
    for (const auto& function : kFunctions) {
      list.push_back({str(function.name, " ", size.name), Measurement::Threads::each,
                      [=](int threads) { return prepare_elementwise(function.f, false, size.elements, threads); }});
    }
    list.push_back({str("gelu and slope ", size.name), Measurement::Threads::each,
                    [=](int threads) { return prepare_elementwise(Unary::gelu, true, size.elements, threads); }});
  }
  return list;
}

}  // namespace normlab
