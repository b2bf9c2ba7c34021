// Column sums in fixed pieces of rows: blocks sum pieces, then the pieces' sums are added in order. No atomics.
#include "ops/column_sum.h"
#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {
namespace {

constexpr int lanes = 32, teams = 8, most_pieces = 128;

/// A block sums one piece of rows over lanes·step columns; its teams take rows in turn and are then added in order.
template <class T, class A, int step>
__global__ void __launch_bounds__(lanes* teams)
    sum_piece(A* partial, const T* x, std::int64_t rows, std::int64_t n, std::int64_t piece_rows) {
    int lane = threadIdx.x % lanes, team = threadIdx.x / lanes;
    std::int64_t col = (blockIdx.x * std::int64_t{lanes} + lane) * step, begin = blockIdx.y * piece_rows;
    std::int64_t end = begin + piece_rows < rows ? begin + piece_rows : rows;
    A sum[step] = {};
    if (col < n) {
#pragma unroll 4
        for (std::int64_t r = begin + team; r < end; r += teams) {
            auto few = load_few<step>(x + r * n + col);
#pragma unroll
            for (int k = 0; k < step; ++k) sum[k] += widen(few.v[k]);
        }
    }
    __shared__ A shared[teams][step][lanes];
#pragma unroll
    for (int k = 0; k < step; ++k) shared[team][k][lane] = sum[k];
    __syncthreads();
    for (int i = threadIdx.x; i < lanes * step; i += lanes * teams) {
        std::int64_t c = blockIdx.x * std::int64_t{lanes * step} + i;
        if (c >= n) continue;
        A all = 0;
#pragma unroll
        for (int t = 0; t < teams; ++t) all += shared[t][i % step][i / step];
        partial[blockIdx.y * n + c] = all;
    }
}

template <class A>
struct Sums {
    A* out[3];
    const A* partial[3];
};

constexpr int adders = 32;  // teams that add pieces: there is little else to hide the memory's latency

/// Row y of the grid adds sum y.
template <class A>
__global__ void __launch_bounds__(lanes* adders) add_pieces(Sums<A> sums, std::int64_t pieces, std::int64_t n) {
    A* out = sums.out[blockIdx.y];
    const A* partial = sums.partial[blockIdx.y];
    int lane = threadIdx.x % lanes, team = threadIdx.x / lanes;
    std::int64_t col = blockIdx.x * std::int64_t{lanes} + lane;
    A sum = 0;
    if (col < n)
#pragma unroll 4
        for (std::int64_t p = team; p < pieces; p += adders) sum += partial[p * n + col];
    __shared__ A shared[adders][lanes];
    shared[team][lane] = sum;
    __syncthreads();
    if (team != 0 || col >= n) return;
    sum = 0;
#pragma unroll
    for (int t = 0; t < adders; ++t) sum += shared[t][lane];
    out[col] += sum;
}

}  // namespace

void add_column_sums(const Exec& exec, std::initializer_list<ColumnSums> all) {
    auto launch = [&](auto zero) {
        using A = decltype(zero);
        Sums<A> sums{};
        unsigned count = 0;
        ConstTensor shape;
        for (const ColumnSums& one : all) {
            if (!one.out) continue;
            shape = one.partial;
            sums.out[count] = one.out.ptr<A>();
            sums.partial[count++] = one.partial.ptr<A>();
        }
        if (count == 0) return;
        add_pieces<<<dim3(blocks_for(shape.cols(), lanes), count), lanes * adders, 0, exec.gpu->stream>>>(
            sums, shape.rows(), shape.cols());
    };
    all.begin()->partial.dtype == DType::f64 ? launch(double{}) : launch(float{});
    TERA_LAUNCHED();
}

void column_sum(const Exec& exec, Tensor out, ConstTensor x) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        ArenaScope scope(*exec.arena);
        std::int64_t n = x.cols(), rows = x.rows();
        std::int64_t piece_rows = std::max<std::int64_t>(32, (rows + most_pieces - 1) / most_pieces);
        std::int64_t pieces = (rows + piece_rows - 1) / piece_rows;
        Tensor partial = exec.tensor(dtype_of<A>, {pieces, n});
        if (exec.counts() || rows == 0) return;
        auto launch = [&](auto width) {
            constexpr int step = decltype(width)::value;
            dim3 grid(blocks_for(n, lanes * step), static_cast<unsigned>(pieces));
            sum_piece<device_t<T>, A, step>
                <<<grid, lanes * teams, 0, exec.gpu->stream>>>(partial.ptr<A>(), dptr<T>(x), rows, n, piece_rows);
        };
        if (packs<device_t<T>>(n))
            launch(std::integral_constant<int, Pack<device_t<T>>::n>{});
        else
            launch(std::integral_constant<int, 1>{});
        TERA_LAUNCHED();
        add_column_sums(exec, {{out, partial}});
    });
}

}  // namespace tera::ops::cuda
