#include "ops/column_sum.h"
#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {
namespace {

constexpr int piece_rows = 128;

template <class T, class A>
__global__ void partial_sums(A* partial, const T* x, std::int64_t rows, std::int64_t n) {
    std::int64_t col = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x, r0 = blockIdx.y * std::int64_t{piece_rows};
    if (col >= n) return;
    A sum = 0;
    for (std::int64_t r = r0; r < r0 + piece_rows && r < rows; ++r) sum += widen(x[r * n + col]);
    partial[blockIdx.y * n + col] = sum;
}

template <class A>
__global__ void add_sums(A* out, const A* partial, std::int64_t pieces, std::int64_t n) {
    std::int64_t col = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (col >= n) return;
    A sum = 0;
    for (std::int64_t p = 0; p < pieces; ++p) sum += partial[p * n + col];
    out[col] += sum;
}

}  // namespace

void column_sum(const Exec& exec, Tensor out, ConstTensor x) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        ArenaScope scope(*exec.arena);
        std::int64_t n = x.cols(), pieces = (x.rows() + piece_rows - 1) / piece_rows;
        A* partial = exec.tensor(dtype_of<A>, {pieces, n}).template ptr<A>();
        dim3 grid(blocks_for(n, 128), static_cast<unsigned>(pieces));
        partial_sums<device_t<T>, A><<<grid, 128, 0, exec.gpu->stream>>>(partial, dptr<T>(x), x.rows(), n);
        add_sums<A><<<blocks_for(n, 128), 128, 0, exec.gpu->stream>>>(out.ptr<A>(), partial, pieces, n);
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
