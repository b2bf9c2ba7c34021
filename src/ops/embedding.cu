#include "ops/cuda_types.cuh"
#include "ops/embedding.h"
#include "ops/index_sort.h"

namespace tera::ops::cuda {
namespace {

template <class T, int step>
__global__ void embedding_kernel(T* x, const T* word, const T* position, const std::int32_t* tokens,
                                 const std::int32_t* positions, std::int64_t groups, std::int64_t D) {
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= groups) return;
    std::int64_t t = i * step / D, col = i * step % D;
    auto sum = load_few<step>(word + std::int64_t{tokens[t]} * D + col);
    if (position) {
        auto place = load_few<step>(position + std::int64_t{positions[t]} * D + col);
#pragma unroll
        for (int k = 0; k < step; ++k) sum.v[k] = narrow<T>(widen(sum.v[k]) + widen(place.v[k]));
    }
    store_few(x + i * step, sum);
}

template <class T, int step>
__global__ void embedding_part_kernel(T* x, const T* table, std::int64_t first, std::int64_t here,
                                      const std::int32_t* tokens, std::int64_t groups, std::int64_t D) {
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= groups) return;
    std::int64_t t = i * step / D, col = i * step % D, row = tokens[t] - first;
    Few<T, step> few;
    if (row >= 0 && row < here)
        few = load_few<step>(table + row * D + col);
    else
#pragma unroll
        for (int k = 0; k < step; ++k) few.v[k] = narrow<T>(0.0f);
    store_few(x + i * step, few);
}

/// The rows of a table that are here: keys of other rows are passed over.
template <class A>
struct OwnRows {
    A* table;
    std::int64_t first, here, D;
    __device__ bool has(std::int32_t key) const { return key >= first && key < first + here; }
    __device__ A* at(std::int32_t key) const { return table + (key - first) * D; }
};

/// A run of equal keys may cross the chunks of sorted tokens that blocks work on: a run inside one chunk is added to
/// the table at once; of the others each chunk leaves its part in `parts` [chunks, 2, D], slot 0 for a run begun
/// earlier and slot 1 for one that goes on after the chunk, and join_runs adds those up in order. No atomics, always
/// the same bits.
constexpr int chunk = 64, ahead = 4;

template <class A, int step>
__device__ void add_few(A* to, const Few<A, step>& x) {
    auto old = load_few<step>(to);
#pragma unroll
    for (int k = 0; k < step; ++k) old.v[k] += x.v[k];
    store_few(to, old);
}

template <class T, class A, int step>
__global__ void sum_runs(OwnRows<A> table, A* parts, const T* dx, SortedIndices sorted, std::int64_t n,
                         std::int64_t D) {
    __shared__ std::int32_t keys[chunk + 2], rows[chunk];  // keys with one neighbour on either side, -1 beyond the ends
    std::int64_t begin = blockIdx.x * std::int64_t{chunk}, rest = n - begin;
    int count = rest < chunk ? static_cast<int>(rest) : chunk;
    for (int i = threadIdx.x; i < count + 2; i += blockDim.x) {
        std::int64_t at = begin + i - 1;
        keys[i] = at >= 0 && at < n ? sorted.keys[at] : -1;
        if (i < count) rows[i] = sorted.places[begin + i];
    }
    __syncthreads();
    std::int64_t col = (blockIdx.y * std::int64_t{blockDim.x} + threadIdx.x) * step;
    if (col >= D) return;
    Few<A, step> sum = {};
    bool begins = keys[0] != keys[1];
    for (int base = 0; base < count; base += ahead) {
        Few<T, step> few[ahead];
#pragma unroll
        for (int k = 0; k < ahead; ++k)
            if (base + k < count) few[k] = load_few<step>(dx + rows[base + k] * D + col);
#pragma unroll
        for (int k = 0; k < ahead; ++k) {
            int i = base + k;
            if (i >= count) break;
#pragma unroll
            for (int s = 0; s < step; ++s) sum.v[s] += widen(few[k].v[s]);
            bool ends = keys[i + 2] != keys[i + 1];
            if (!ends && i + 1 < count) continue;
            if (begins && ends) {
                if (table.has(keys[i + 1])) add_few(table.at(keys[i + 1]) + col, sum);
            } else {
                store_few(parts + (blockIdx.x * std::int64_t{2} + begins) * D + col, sum);
            }
            sum = {};
            begins = true;
        }
    }
}

template <class A>
__global__ void join_runs(OwnRows<A> table, const A* parts, const std::int32_t* keys, std::int64_t n, std::int64_t D) {
    std::int64_t begin = blockIdx.x * std::int64_t{chunk}, end = begin + chunk;
    if (end >= n || keys[end] != keys[end - 1]) return;  // no run leaves this chunk
    std::int32_t key = keys[end - 1];
    if (!table.has(key)) return;
    if (keys[begin] == key && begin > 0 && keys[begin - 1] == key) return;  // it began earlier
    std::int64_t col = blockIdx.y * std::int64_t{blockDim.x} + threadIdx.x;
    if (col >= D) return;
    A sum = parts[(blockIdx.x * std::int64_t{2} + 1) * D + col];
    for (std::int64_t c = blockIdx.x + 1;; ++c) {
        sum += parts[c * 2 * D + col];
        std::int64_t last = (c + 1) * chunk;
        if (last >= n || keys[last] != key) break;
    }
    table.at(key)[col] += sum;
}

}  // namespace

void embedding(const Exec& exec, Tensor x, ConstTensor word, ConstTensor position, const std::int32_t* tokens,
               const std::int32_t* positions) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        const device_t<T>* pp = position ? dptr<T>(position) : nullptr;
        auto launch = [&](auto width) {
            constexpr int step = decltype(width)::value;
            std::int64_t groups = x.numel() / step;
            embedding_kernel<device_t<T>, step><<<blocks_for(groups, 256, INT32_MAX), 256, 0, exec.gpu->stream>>>(
                dptr<T>(x), dptr<T>(word), pp, tokens, positions, groups, x.cols());
        };
        constexpr int pack = Pack<device_t<T>>::n;
        if (x.cols() % pack == 0)
            launch(std::integral_constant<int, pack>{});
        else
            launch(std::integral_constant<int, 1>{});
    });
    TERA_LAUNCHED();
}

void embedding_part(const Exec& exec, Tensor x, ConstTensor table, TableRows rows, const std::int32_t* tokens) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        auto launch = [&](auto width) {
            constexpr int step = decltype(width)::value;
            std::int64_t groups = x.numel() / step;
            embedding_part_kernel<device_t<T>, step><<<blocks_for(groups, 256, INT32_MAX), 256, 0, exec.gpu->stream>>>(
                dptr<T>(x), dptr<T>(table), rows.first, table.rows(), tokens, groups, x.cols());
        };
        constexpr int pack = Pack<device_t<T>>::n;
        if (x.cols() % pack == 0)
            launch(std::integral_constant<int, pack>{});
        else
            launch(std::integral_constant<int, 1>{});
    });
    TERA_LAUNCHED();
}

void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices,
                        TableRows rows) {
    dispatch_float(dx.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        ArenaScope scope(*exec.arena);
        std::int64_t n = dx.rows(), D = dx.cols(), chunks = (n + chunk - 1) / chunk;
        SortedIndices sorted = sort_indices(exec, indices, n, rows.total);
        A* parts = exec.tensor(dtype_of<A>, {chunks, 2, D}).template ptr<A>();
        if (exec.counts() || n == 0) return;
        const OwnRows<A> table{table_grad.ptr<A>(), rows.first, table_grad.rows(), D};
        auto launch = [&](auto width) {
            constexpr int step = decltype(width)::value;
            dim3 grid(static_cast<unsigned>(chunks), blocks_for(D, 128 * step));
            sum_runs<device_t<T>, A, step><<<grid, 128, 0, exec.gpu->stream>>>(table, parts, dptr<T>(dx), sorted, n, D);
        };
        if (packs<device_t<T>>(D))
            launch(std::integral_constant<int, Pack<device_t<T>>::n>{});
        else
            launch(std::integral_constant<int, 1>{});
        dim3 grid(static_cast<unsigned>(chunks), blocks_for(D, 128));
        join_runs<A><<<grid, 128, 0, exec.gpu->stream>>>(table, parts, sorted.keys, n, D);
        TERA_LAUNCHED();
    });
}

}  // namespace tera::ops::cuda
