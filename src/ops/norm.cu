// LayerNorm and RMSNorm over rows, forward: a row lies in the registers of one warp, or of one block where it is wider.
// And over heads, both ways.
#include "ops/norm_cuda.cuh"

namespace tera::ops::cuda {
namespace {

// Enough to fill any GPU; fixed, so that sums and scratch memory are the same on all.
constexpr std::int64_t head_backward_blocks = 2112;

/// Any width; reads the row three times.
template <class T, class A>
__global__ void norm_any_width(T* y, A* mean_out, A* rstd_out, const T* x, const T* w, const T* b, std::int64_t n,
                               Spec spec) {
    const T* row = x + blockIdx.x * n;
    T* out = y + blockIdx.x * n;
    A mean = 0, squares = 0;
    if (!spec.rms) {
        A sum = 0;
        for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += widen(row[i]);
        mean = block_reduce(sum, Sum{}) / static_cast<A>(n);
    }
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        A v = widen(row[i]) - mean;
        squares += v * v;
    }
    squares = block_reduce(squares, Sum{});
    A rstd = A(1) / sqrt(squares / static_cast<A>(n) + static_cast<A>(spec.eps));
    if (threadIdx.x == 0) {
        rstd_out[blockIdx.x] = rstd;
        if (mean_out) mean_out[blockIdx.x] = mean;
    }
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) {
        A r = (widen(row[i]) - mean) * rstd * (static_cast<A>(spec.one_plus) + widen(w[i]));
        if (b) r += widen(b[i]);
        out[i] = narrow<T>(r);
    }
}

constexpr int forward_threads = 256;

/// Rows of whole packs; a row belongs to one warp or, if not one_warp, to the block. A thread holds packs lane,
/// lane + team, ... of it.
template <class T, class A, int packs, bool one_warp>
__global__ void __launch_bounds__(forward_threads)
    norm_rows(T* y, A* mean_out, A* rstd_out, const T* x, const T* w, const T* b, std::int64_t rows, int n, Spec spec) {
    constexpr int step = Pack<T>::n, team = one_warp ? 32 : forward_threads;
    std::int64_t row = one_warp ? blockIdx.x * std::int64_t{forward_threads / 32} + (threadIdx.x >> 5) : blockIdx.x;
    if (row >= rows) return;
    int first = (one_warp ? threadIdx.x & 31 : threadIdx.x) * step;
    auto total = [](A v) {
        if constexpr (one_warp)
            return warp_sum(v);
        else
            return block_reduce(v, Sum{});
    };
    x += row * n;
    y += row * n;
    Pack<T> v[packs];
#pragma unroll
    for (int p = 0; p < packs; ++p)
        if (int i = first + p * team * step; i < n) v[p] = load_pack(x + i);
    A mean = 0, squares = 0;
    if (!spec.rms) {
        A sum = 0;
#pragma unroll
        for (int p = 0; p < packs; ++p)
            if (first + p * team * step < n)
#pragma unroll
                for (int k = 0; k < step; ++k) sum += widen(v[p].v[k]);
        mean = total(sum) / static_cast<A>(n);
    }
#pragma unroll
    for (int p = 0; p < packs; ++p)
        if (first + p * team * step < n)
#pragma unroll
            for (int k = 0; k < step; ++k) {
                A d = widen(v[p].v[k]) - mean;
                squares += d * d;
            }
    A rstd = A(1) / sqrt(total(squares) / static_cast<A>(n) + static_cast<A>(spec.eps));
    if (first == 0) {
        rstd_out[row] = rstd;
        if (mean_out) mean_out[row] = mean;
    }
#pragma unroll
    for (int p = 0; p < packs; ++p) {
        int i = first + p * team * step;
        if (i >= n) continue;
        Pack<T> weight = load_pack(w + i), bias, out;
        if (b) bias = load_pack(b + i);
#pragma unroll
        for (int k = 0; k < step; ++k) {
            A r = (widen(v[p].v[k]) - mean) * rstd * (static_cast<A>(spec.one_plus) + widen(weight.v[k]));
            if (b) r += widen(bias.v[k]);
            out.v[k] = narrow<T>(r);
        }
        store_pack(y + i, out);
    }
}

/// One warp per (token, head); the weight sums of a block's heads stay in shared memory.
template <class T, class A>
__global__ void head_norm_kernel(T* out, A* mean_out, A* rstd_out, const T* qkv, const T* wq, const T* bq, const T* wk,
                                 const T* bk, std::int64_t tokens, int H, int G, int K, Spec spec) {
    std::int64_t item = (blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x) / 32;
    int lane = threadIdx.x & 31, heads = H + 2 * G;
    if (item >= tokens * heads) return;
    std::int64_t t = item / heads;
    int h = static_cast<int>(item % heads);
    const T* x = qkv + item * K;
    T* y = out + item * K;
    if (h >= H + G) {
        for (int i = lane; i < K; i += 32) y[i] = x[i];
        return;
    }
    A mean = 0, squares = 0;
    if (!spec.rms) {
        A sum = 0;
        for (int i = lane; i < K; i += 32) sum += widen(x[i]);
        mean = warp_sum(sum) / static_cast<A>(K);
    }
    for (int i = lane; i < K; i += 32) squares += (widen(x[i]) - mean) * (widen(x[i]) - mean);
    A rstd = A(1) / sqrt(warp_sum(squares) / static_cast<A>(K) + static_cast<A>(spec.eps));
    const T *w = h < H ? wq : wk, *b = h < H ? bq : bk;
    for (int i = lane; i < K; i += 32) {
        A v = (widen(x[i]) - mean) * rstd * (static_cast<A>(spec.one_plus) + widen(w[i]));
        if (b) v += widen(b[i]);
        y[i] = narrow<T>(v);
    }
    if (lane == 0) {
        rstd_out[t * (H + G) + h] = rstd;
        if (mean_out) mean_out[t * (H + G) + h] = mean;
    }
}

/// One warp per block walks tokens; lane owns columns lane + 32 k of [dwq, dbq, dwk, dbk].
template <class T, class A, int chunks>
__global__ void head_norm_backward_kernel(T* dqkv, A* partial, const T* qkv, const T* wq, const T* wk, const A* mean_in,
                                          const A* rstd_in, std::int64_t tokens, int H, int G, int K, Spec spec) {
    int lane = threadIdx.x, heads = H + 2 * G;
    A sums[4][chunks];
#pragma unroll
    for (auto& s : sums)
#pragma unroll
        for (A& v : s) v = 0;
    for (std::int64_t t = blockIdx.x; t < tokens; t += gridDim.x)
        for (int h = 0; h < H + G; ++h) {
            T* d = dqkv + (t * heads + h) * K;
            const T *x = qkv + (t * heads + h) * K, *w = h < H ? wq : wk;
            A mean = mean_in ? mean_in[t * (H + G) + h] : A(0), rstd = rstd_in[t * (H + G) + h], dot = 0, sum = 0;
            A g[chunks], xhat[chunks];
#pragma unroll
            for (int k = 0; k < chunks; ++k) {
                int i = lane + 32 * k;
                g[k] = xhat[k] = 0;
                if (i < K) {
                    A dy = widen(d[i]);
                    xhat[k] = (widen(x[i]) - mean) * rstd;
                    g[k] = dy * (static_cast<A>(spec.one_plus) + widen(w[i]));
                    dot += g[k] * xhat[k];
                    sum += g[k];
                    sums[h < H ? 0 : 2][k] += dy * xhat[k];
                    sums[h < H ? 1 : 3][k] += dy;
                }
            }
            dot = warp_sum(dot) / static_cast<A>(K);
            sum = spec.rms ? A(0) : warp_sum(sum) / static_cast<A>(K);
#pragma unroll
            for (int k = 0; k < chunks; ++k)
                if (lane + 32 * k < K) d[lane + 32 * k] = narrow<T>(rstd * (g[k] - sum - xhat[k] * dot));
        }
#pragma unroll
    for (int which = 0; which < 4; ++which)
#pragma unroll
        for (int k = 0; k < chunks; ++k)
            if (lane + 32 * k < K) partial[(blockIdx.x * 4 + which) * K + lane + 32 * k] = sums[which][k];
}

template <class A>
__global__ void add_head_partials(A* dwq, A* dbq, A* dwk, A* dbk, const A* partial, std::int64_t count, int K) {
    int which = blockIdx.x;
    A* out = which == 0 ? dwq : which == 1 ? dbq : which == 2 ? dwk : dbk;
    if (!out) return;
    for (int i = threadIdx.x; i < K; i += blockDim.x) {
        A sum = 0;
        for (std::int64_t p = 0; p < count; ++p) sum += partial[(p * 4 + which) * K + i];
        out[i] += sum;
    }
}

}  // namespace

void norm(const Exec& exec, const NormSpec& spec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor b,
          const NormStats& stats) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        using D = device_t<T>;
        A *mean = optional<A>(stats.mean), *rstd = stats.rstd.ptr<A>();
        cudaStream_t stream = exec.gpu->stream;
        std::int64_t rows = x.rows(), n = x.cols(), team_packs = (n + 32 * Pack<D>::n - 1) / (32 * Pack<D>::n);
        constexpr int warps = forward_threads / 32;
        if (packs<D>(n)) {
            if (with_least<2, 4, 8, 12, 16>(team_packs, [&](auto count) {
                    norm_rows<D, A, decltype(count)::value, true>
                        <<<blocks_for(rows, warps, INT32_MAX), forward_threads, 0, stream>>>(
                            dptr<T>(y), mean, rstd, dptr<T>(x), dptr<T>(w), optional_in<T>(b), rows,
                            static_cast<int>(n), spec_of(spec));
                }))
                return;
            if (with_least<4, 16>((team_packs + warps - 1) / warps, [&](auto count) {
                    norm_rows<D, A, decltype(count)::value, false>
                        <<<blocks_for(rows, 1, INT32_MAX), forward_threads, 0, stream>>>(
                            dptr<T>(y), mean, rstd, dptr<T>(x), dptr<T>(w), optional_in<T>(b), rows,
                            static_cast<int>(n), spec_of(spec));
                }))
                return;
        }
        norm_any_width<D, A><<<static_cast<unsigned>(rows), 256, 0, stream>>>(
            dptr<T>(y), mean, rstd, dptr<T>(x), dptr<T>(w), optional_in<T>(b), n, spec_of(spec));
    });
    TERA_LAUNCHED();
}

void head_norm(const Exec& exec, const NormSpec& spec, HeadCounts counts, Tensor out, ConstTensor qkv,
               const HeadNormWeights& weights, const NormStats& stats) {
    dispatch_float(qkv.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        std::int64_t warps = qkv.rows() * (counts.heads + 2 * counts.kv_heads);
        head_norm_kernel<device_t<T>, A><<<blocks_for(warps, 8, INT32_MAX), 256, 0, exec.gpu->stream>>>(
            dptr<T>(out), optional<A>(stats.mean), stats.rstd.ptr<A>(), dptr<T>(qkv), dptr<T>(weights.wq),
            optional_in<T>(weights.bq), dptr<T>(weights.wk), optional_in<T>(weights.bk), qkv.rows(),
            static_cast<int>(counts.heads), static_cast<int>(counts.kv_heads), static_cast<int>(counts.head_dim),
            spec_of(spec));
    });
    TERA_LAUNCHED();
}

void head_norm_backward(const Exec& exec, const NormSpec& spec, HeadCounts counts, const HeadNormGrads& grads,
                        Tensor dqkv, ConstTensor qkv, const HeadNormWeights& weights, const NormStats& stats) {
    dispatch_float(qkv.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        ArenaScope scope(*exec.arena);
        std::int64_t K = counts.head_dim, blocks = std::min(qkv.rows(), head_backward_blocks);
        A* partial = exec.tensor(dtype_of<A>, {head_backward_blocks, 4, K}).template ptr<A>();
        if (exec.counts()) return;
        bool fits = with_least<1, 2, 4, 8>((K + 31) / 32, [&](auto chunks) {
            head_norm_backward_kernel<device_t<T>, A, decltype(chunks)::value>
                <<<static_cast<unsigned>(blocks), 32, 0, exec.gpu->stream>>>(
                    dptr<T>(dqkv), partial, dptr<T>(qkv), dptr<T>(weights.wq), dptr<T>(weights.wk),
                    optional<A>(stats.mean), stats.rstd.ptr<A>(), qkv.rows(), static_cast<int>(counts.heads),
                    static_cast<int>(counts.kv_heads), static_cast<int>(K), spec_of(spec));
        });
        TERA_CHECK(fits, "norm over too wide a head: ", K);
        add_head_partials<A><<<4, 128, 0, exec.gpu->stream>>>(grads.dwq.ptr<A>(), optional<A>(grads.dbq),
                                                              grads.dwk.ptr<A>(), optional<A>(grads.dbk), partial,
                                                              blocks, static_cast<int>(K));
        TERA_LAUNCHED();
    });
}

}  // namespace tera::ops::cuda
