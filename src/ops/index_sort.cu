// Radix sort by eight bits at a time, lowest first. Per pass: every tile counts its digits, one block turns the counts
// [digit, tile] into places, every tile moves its elements. A warp owns consecutive elements and ranks equal digits by
// lane, so nothing is decided by a race and the order is always the same.
#include "ops/cuda_types.cuh"
#include "ops/index_sort.h"

namespace tera::ops::cuda {
namespace {

constexpr int digits = 256, threads = 256, warps = threads / 32, rounds = 4, tile = threads * rounds;
static_assert(digits == threads, "one thread per digit");

/// Calls f(element, digit, lanes of the warp with the same digit) for every element of this thread, in order; elements
/// beyond the end have a digit of their own. All lanes come along, so f may synchronise the warp.
template <class F>
__device__ void each_element(const std::int32_t* keys, std::int64_t n, int shift, const F& f) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    std::int64_t first = blockIdx.x * std::int64_t{tile} + warp * 32 * rounds + lane;
    for (int round = 0; round < rounds; ++round) {
        std::int64_t i = first + round * 32;
        int digit = i < n ? (keys[i] >> shift) & (digits - 1) : digits;
        unsigned alike = __match_any_sync(0xffffffffu, digit);
        f(i, digit, alike);
        __syncwarp();
    }
}

/// counts[warp][digit] of this tile.
__device__ void count_tile(int (&counts)[warps][digits + 1], const std::int32_t* keys, std::int64_t n, int shift) {
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int w = 0; w < warps; ++w) counts[w][threadIdx.x] = 0;
    if (threadIdx.x < warps) counts[threadIdx.x][digits] = 0;
    __syncthreads();
    each_element(keys, n, shift, [&](std::int64_t, int digit, unsigned alike) {
        if (lane == __ffs(alike) - 1) counts[warp][digit] += __popc(alike);
    });
    __syncthreads();
}

__global__ void __launch_bounds__(threads)
    count_digits(std::int32_t* out, const std::int32_t* keys, std::int64_t n, int shift) {
    __shared__ int counts[warps][digits + 1];
    count_tile(counts, keys, n, shift);
    int sum = 0;
    for (int w = 0; w < warps; ++w) sum += counts[w][threadIdx.x];
    out[std::int64_t{threadIdx.x} * gridDim.x + blockIdx.x] = sum;
}

/// Each count becomes the sum of those before it.
__global__ void __launch_bounds__(1024) counts_to_places(std::int32_t* counts, std::int64_t n) {
    __shared__ int of_warp[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, before = 0;
    for (std::int64_t base = 0; base < n; base += blockDim.x) {
        std::int64_t i = base + threadIdx.x;
        int own = i < n ? counts[i] : 0, up_to = own;
        for (int d = 1; d < 32; d *= 2) {
            int below = __shfl_up_sync(0xffffffffu, up_to, d);
            if (lane >= d) up_to += below;
        }
        __syncthreads();
        if (lane == 31) of_warp[warp] = up_to;
        __syncthreads();
        int earlier = 0, all = 0;
        for (int w = 0; w < 32; ++w) {
            if (w < warp) earlier += of_warp[w];
            all += of_warp[w];
        }
        if (i < n) counts[i] = before + earlier + up_to - own;
        before += all;
    }
}

__global__ void __launch_bounds__(threads)
    move_elements(std::int32_t* keys_out, std::int32_t* places_out, const std::int32_t* keys,
                  const std::int32_t* places, const std::int32_t* starts, std::int64_t n, int shift) {
    __shared__ int next[warps][digits + 1];
    count_tile(next, keys, n, shift);
    int at = starts[std::int64_t{threadIdx.x} * gridDim.x + blockIdx.x];
    for (int w = 0; w < warps; ++w) {
        int count = next[w][threadIdx.x];
        next[w][threadIdx.x] = at;
        at += count;
    }
    __syncthreads();
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    each_element(keys, n, shift, [&](std::int64_t i, int digit, unsigned alike) {
        int to = next[warp][digit] + __popc(alike & ((1u << lane) - 1));
        __syncwarp();
        if (lane == __ffs(alike) - 1) next[warp][digit] += __popc(alike);
        if (i >= n) return;
        keys_out[to] = keys[i];
        places_out[to] = places ? places[i] : static_cast<std::int32_t>(i);
    });
}

}  // namespace

SortedIndices sort_indices(const Exec& exec, const std::int32_t* indices, std::int64_t n, std::int64_t limit) {
    TERA_CHECK(n < INT32_MAX && limit <= INT32_MAX, n, " indices below ", limit);
    std::int64_t tiles = (n + tile - 1) / tile;
    std::int32_t *keys[2], *places[2];
    for (int k = 0; k < 2; ++k) {
        keys[k] = exec.tensor(DType::i32, {n}).ptr<std::int32_t>();
        places[k] = exec.tensor(DType::i32, {n}).ptr<std::int32_t>();
    }
    std::int32_t* counts = exec.tensor(DType::i32, {digits * tiles}).ptr<std::int32_t>();
    const std::int32_t *from = indices, *from_places = nullptr;
    int target = 0;
    for (int shift = 0; shift == 0 || (limit - 1) >> shift > 0; shift += 8, target ^= 1) {
        if (!exec.counts() && n > 0) {
            cudaStream_t stream = exec.gpu->stream;
            unsigned blocks = static_cast<unsigned>(tiles);
            count_digits<<<blocks, threads, 0, stream>>>(counts, from, n, shift);
            counts_to_places<<<1, 1024, 0, stream>>>(counts, digits * tiles);
            move_elements<<<blocks, threads, 0, stream>>>(keys[target], places[target], from, from_places, counts, n,
                                                          shift);
            TERA_LAUNCHED();
        }
        from = keys[target];
        from_places = places[target];
    }
    return {from, from_places};
}

}  // namespace tera::ops::cuda
