// What the files for AVX2 and AVX-512 share beyond kernels/all.inl.
#define NORMLAB_X86_INSTRUCTIONS

// to[j][i] = from[i][j].
inline void transpose_4x4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  __m128 row0 = _mm_loadu_ps(from), row1 = _mm_loadu_ps(from + from_stride);
  __m128 row2 = _mm_loadu_ps(from + 2 * from_stride), row3 = _mm_loadu_ps(from + 3 * from_stride);
  _MM_TRANSPOSE4_PS(row0, row1, row2, row3);
  _mm_storeu_ps(to, row0);
  _mm_storeu_ps(to + to_stride, row1);
  _mm_storeu_ps(to + 2 * to_stride, row2);
  _mm_storeu_ps(to + 3 * to_stride, row3);
}

// While one of these lives, this thread takes numbers below the smallest normal one for 0, in operands and in results.
class FlushSmallNumbers {
 public:
  FlushSmallNumbers() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040u); }  // flush to zero, denormals are zero
  ~FlushSmallNumbers() { _mm_setcsr(before_); }
  FlushSmallNumbers(const FlushSmallNumbers&) = delete;
  FlushSmallNumbers& operator=(const FlushSmallNumbers&) = delete;

 private:
  unsigned before_;
};
