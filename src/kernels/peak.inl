// What the multiply-add units of this instruction set can do, for `normlab bench`.

// Multiply-adds that wait for nothing but their own predecessor, in as many chains as fill the units of any processor
// so far (latency times units is 8 to 12) and still leave two of 16 registers for the factors. Returns the number of
// floating-point operations done, two per multiply-add and element.
double fma_chain(int64_t rounds) {
  constexpr unsigned kChains = 12;
  const Vector factor = real(0.5) - Vector{}, summand = real(1) - Vector{};
  Vector total[kChains];
#pragma GCC unroll 16
  for (unsigned c = 0; c < kChains; ++c) total[c] = static_cast<real>(c) - Vector{};
  for (int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 16
    for (unsigned c = 0; c < kChains; ++c) total[c] = multiply_add(total[c], factor, summand);
  }
  // The result is looked at, so that the work is not left out: every chain goes to 2, none becomes NaN.
  Vector all = total[0];
  for (unsigned c = 1; c < kChains; ++c) all += total[c];
  const double operations = 2.0 * kChains * kVector * static_cast<double>(rounds);
  return all[0] == all[0] ? operations : 0;
}
