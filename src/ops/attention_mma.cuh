// What attention's kernels on the matrix units of a warp share: tiles, and how they are launched.
#pragma once

#include "ops/attention_scores.cuh"
#include "ops/mma.cuh"

namespace tera::ops::cuda {

constexpr int block_rows = 64, warp_rows = 16, mma_threads = block_rows / warp_rows * 32;
/// Keys of a tile that queries walk over: so many that what a thread holds stays in registers.
template <int D>
constexpr int key_rows = D <= 128 ? 64 : 32;

/// The first and last key that any of the block's queries sees.
__device__ inline Sight sight_of_block(const Heads& n, std::int64_t b, std::int64_t q0) {
    __shared__ int range[2];
    if (threadIdx.x == 0) range[0] = INT32_MAX, range[1] = 0;
    __syncthreads();
    if (threadIdx.x < block_rows) {
        const Sight s = sight(n, b, q0 + threadIdx.x);
        if (s.end > s.first) atomicMin(&range[0], s.first), atomicMax(&range[1], s.end);
    }
    __syncthreads();
    return {range[0], range[1]};
}

/// Starts loading a tile: rows from `first` on of a head that has so many.
template <int threads = mma_threads, class T, int ROWS, int D>
__device__ inline void load_head(const Tile<T, ROWS, D>& tile, const Rows<const T>& from, const Heads& n,
                                 std::int64_t b, std::int64_t head, std::int64_t first, std::int64_t rows) {
    tile.template load<threads>(from.at(n, 0, b, head), n.B * from.width, first, rows, static_cast<int>(n.K));
}

/// The block's queries, all of one head, the last ones first, and this lane's two of them.
struct QueryBlock {
    const Heads& n;
    std::int64_t b, h, g, q0;
    int warp_row;      ///< where the warp's begin in the block
    std::int64_t row;  ///< the lane's first
    Sight all, first, second;

    __device__ explicit QueryBlock(const Heads& heads)
        : n(heads),
          b(blockIdx.y / n.H),
          h(blockIdx.y % n.H),
          g(h / (n.H / n.G)),
          q0(std::int64_t{gridDim.x - 1 - blockIdx.x} * block_rows),
          warp_row(static_cast<int>(threadIdx.x) / 32 * warp_rows),
          row(q0 + warp_row + lane_row()),
          all(sight_of_block(n, b, q0)),
          first(sight(n, b, row)),
          second(sight(n, b, row + 8)) {}

    /// Whether the query of element e of a product sees the key.
    __device__ bool sees(int e, int key) const { return (e < 2 ? first : second).sees(key); }
    __device__ bool there(int r) const { return row + 8 * r < n.Sq; }
    __device__ std::int64_t number(int r) const { return (b * n.H + h) * n.Sq + row + 8 * r; }
    __device__ std::uint64_t first_call() const { return n.drops() ? n.dropout.first_call(h, row) : 0; }

    template <class T, int D>
    __device__ void load(const Tile<T, block_rows, D>& tile, const Rows<const T>& from) const {
        load_head(tile, from, n, b, h, q0, n.Sq);
    }

    /// Calls f(keys, values, first key) for each tile of the keys that these queries see, the next on its way
    /// meanwhile. begin() starts loading what is needed besides; the tiles lie at `memory`.
    template <class T, int D, class Begin, class F>
    __device__ void over_keys(T* memory, const Rows<const T>& k, const Rows<const T>& v, const Begin& begin,
                              const F& f) const {
        constexpr int rows = key_rows<D>;
        using Keys = Tile<T, rows, D>;
        const auto keys = [&](int turn) { return Keys{memory + 2 * turn * Keys::elements}; };
        const auto values = [&](int turn) { return Keys{memory + (2 * turn + 1) * Keys::elements}; };
        const auto fetch = [&](int k0, int turn) {
            load_head(keys(turn), k, n, b, g, k0, n.Sk);
            load_head(values(turn), v, n, b, g, k0, n.Sk);
            __pipeline_commit();
        };
        int k0 = all.first / rows * rows, turn = 0;
        if (all.end > 0) {
            begin();
            fetch(k0, 0);
        }
        for (; k0 < all.end; k0 += rows, turn ^= 1) {
            if (k0 + rows < all.end) {
                fetch(k0 + rows, turn ^ 1);
                __pipeline_wait_prior(1);
            } else {
                __pipeline_wait_prior(0);
            }
            __syncthreads();
            f(keys(turn), values(turn), k0);
            __syncthreads();
        }
    }
};

/// Writes this lane's two rows of x [16,D], times a factor each, to rows `row` and row + 8 of a head that has so many.
template <class T, int D>
__device__ inline void store_head(const Rows<T>& to, const Heads& n, std::int64_t b, std::int64_t head,
                                  std::int64_t row, std::int64_t rows, const float (&x)[D / 8][4], float by_first,
                                  float by_second) {
    T* const first = to.at(n, row, b, head);
    T* const second = to.at(n, row + 8, b, head);
#pragma unroll
    for (int i = 0; i < D / 8; ++i) {
        const int col = i * 8 + 2 * (static_cast<int>(threadIdx.x) % 4);
        if (col >= n.K) continue;
        const unsigned x0 = two<T>(x[i][0] * by_first, x[i][1] * by_first),
                       x1 = two<T>(x[i][2] * by_second, x[i][3] * by_second);
        if (row < rows) *reinterpret_cast<unsigned*>(first + col) = x0;
        if (row + 8 < rows) *reinterpret_cast<unsigned*>(second + col) = x1;
    }
}

/// Rows must begin where sixteen bytes can be read at once.
template <class TensorType>
bool reachable(const HeadRows<TensorType>& r) {
    return r.offset % 8 == 0 && r.data.cols() % 8 == 0;
}

inline bool mma_applies(const AttentionSpec& s, DType dtype) {
    return (dtype == DType::bf16 || dtype == DType::f16) && s.K % 8 == 0 && s.K <= 256 && s.Sk < INT32_MAX - 64 &&
           s.B * s.H < 65536;
}

/// Calls f with the smallest width that has room for a head.
template <class F>
void with_width(std::int64_t K, const F& f) {
    if (K <= 64)
        f(std::integral_constant<int, 64>{});
    else if (K <= 96)
        f(std::integral_constant<int, 96>{});
    else if (K <= 128)
        f(std::integral_constant<int, 128>{});
    else if (K <= 160)
        f(std::integral_constant<int, 160>{});
    else if (K <= 192)
        f(std::integral_constant<int, 192>{});
    else
        f(std::integral_constant<int, 256>{});
}

/// Launches with as much shared memory as so many rows take.
template <class T, int D, class Kernel, class... Args>
void launch(const Exec& exec, Kernel* kernel, dim3 grid, int threads, int rows, const Args&... args) {
    const int bytes = rows * (D + 8) * static_cast<int>(sizeof(T));
    TERA_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    kernel<<<grid, static_cast<unsigned>(threads), static_cast<std::size_t>(bytes), exec.gpu->stream>>>(args...);
    TERA_LAUNCHED();
}

/// Calls f with the element type, half or bf16, and the width.
template <class F>
void dispatch_half(DType dtype, std::int64_t K, const F& f) {
    with_width(K, [&](auto width) { dtype == DType::bf16 ? f(bf16_t{}, width) : f(f16_t{}, width); });
}

inline unsigned tiles_of(std::int64_t rows) { return static_cast<unsigned>((rows + block_rows - 1) / block_rows); }

}  // namespace tera::ops::cuda
