// Forward: one block per row (one warp per head for the query/key norm). Backward: a fixed number of blocks walk the
// rows, each thread summing the weight gradient of its own columns; a second kernel adds the blocks' sums in order.
#include "ops/cuda_types.cuh"
#include "ops/norm.h"

namespace tera::ops::cuda {
namespace {

struct Spec {
    bool rms;
    float one_plus;
    double eps;
};
Spec spec_of(const NormSpec& s) { return {s.rms, s.one_plus ? 1.0f : 0.0f, s.eps}; }

template <class T, class A>
__global__ void norm_kernel(T* y, A* mean_out, A* rstd_out, const T* x, const T* w, const T* b, std::int64_t n,
                            Spec spec) {
    const T* row = x + blockIdx.x * n;
    T* out = y + blockIdx.x * n;
    constexpr int step = Pack<T>::n;
    bool by_packs = n % step == 0;
    A mean = 0, squares = 0;
    auto each = [&](auto f) {
        if (by_packs) {
            for (std::int64_t i = threadIdx.x * step; i < n; i += blockDim.x * step) {
                Pack<T> p = load_pack(row + i);
#pragma unroll
                for (int k = 0; k < step; ++k) f(i + k, widen(p.v[k]));
            }
        } else {
            for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) f(i, widen(row[i]));
        }
    };
    if (!spec.rms) {
        A sum = 0;
        each([&](std::int64_t, A v) { sum += v; });
        mean = block_reduce(sum, Sum{}) / static_cast<A>(n);
    }
    each([&](std::int64_t, A v) { squares += (v - mean) * (v - mean); });
    squares = block_reduce(squares, Sum{});
    A rstd = A(1) / sqrt(squares / static_cast<A>(n) + static_cast<A>(spec.eps));
    if (threadIdx.x == 0) {
        rstd_out[blockIdx.x] = rstd;
        if (mean_out) mean_out[blockIdx.x] = mean;
    }
    each([&](std::int64_t i, A v) {
        A r = (v - mean) * rstd * (static_cast<A>(spec.one_plus) + widen(w[i]));
        if (b) r += widen(b[i]);
        out[i] = narrow<T>(r);
    });
}

constexpr int backward_threads = 256;

/// Rows blockIdx.x, blockIdx.x + gridDim.x, ... Each thread owns the columns threadIdx.x + k·threads, k < chunks.
template <class T, class A, int chunks>
__global__ void norm_backward_kernel(T* dx, A* partial_w, A* partial_b, const T* dy, const T* x, const T* w,
                                     const A* mean_in, const A* rstd_in, std::int64_t rows, std::int64_t n, Spec spec) {
    A dw[chunks], db[chunks];
#pragma unroll
    for (int k = 0; k < chunks; ++k) dw[k] = db[k] = 0;
    for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
        A mean = mean_in ? mean_in[r] : A(0), rstd = rstd_in[r], dot = 0, sum = 0;
        A g[chunks], xhat[chunks];
#pragma unroll
        for (int k = 0; k < chunks; ++k) {
            std::int64_t i = threadIdx.x + std::int64_t{k} * backward_threads;
            g[k] = xhat[k] = 0;
            if (i < n) {
                A d = widen(dy[r * n + i]);
                xhat[k] = (widen(x[r * n + i]) - mean) * rstd;
                g[k] = d * (static_cast<A>(spec.one_plus) + widen(w[i]));
                dot += g[k] * xhat[k];
                sum += g[k];
                dw[k] += d * xhat[k];
                db[k] += d;
            }
        }
        dot = block_reduce(dot, Sum{}) / static_cast<A>(n);
        sum = spec.rms ? A(0) : block_reduce(sum, Sum{}) / static_cast<A>(n);
#pragma unroll
        for (int k = 0; k < chunks; ++k) {
            std::int64_t i = threadIdx.x + std::int64_t{k} * backward_threads;
            if (i < n) dx[r * n + i] = narrow<T>(widen(dx[r * n + i]) + rstd * (g[k] - sum - xhat[k] * dot));
        }
    }
#pragma unroll
    for (int k = 0; k < chunks; ++k) {
        std::int64_t i = threadIdx.x + std::int64_t{k} * backward_threads;
        if (i < n) {
            partial_w[blockIdx.x * n + i] = dw[k];
            if (partial_b) partial_b[blockIdx.x * n + i] = db[k];
        }
    }
}

template <class A>
__global__ void add_partials(A* out, const A* partial, std::int64_t count, std::int64_t n) {
    std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i >= n) return;
    A sum = 0;
    for (std::int64_t p = 0; p < count; ++p) sum += partial[p * n + i];
    out[i] += sum;
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

template <class A>
A* optional(const Tensor& t) {
    return t ? t.ptr<A>() : nullptr;
}
template <class T>
const device_t<T>* optional_in(const ConstTensor& t) {
    return t ? dptr<T>(t) : nullptr;
}

/// Calls f with the smallest of 1, 2, 4, ... that covers `need`.
template <int most, class F>
void with_chunks(std::int64_t need, const F& f) {
    TERA_CHECK(need <= most, "norm over too wide a row: ", need, " chunks");
    if (need <= 1)
        f(std::integral_constant<int, 1>{});
    else if (need <= 2)
        f(std::integral_constant<int, 2>{});
    else if (need <= 4)
        f(std::integral_constant<int, 4>{});
    else if (need <= 8)
        f(std::integral_constant<int, 8>{});
    else if constexpr (most > 8) {
        if (need <= 16)
            f(std::integral_constant<int, 16>{});
        else if (need <= 32)
            f(std::integral_constant<int, 32>{});
        else
            f(std::integral_constant<int, most>{});
    }
}

}  // namespace

void norm(const Exec& exec, const NormSpec& spec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor b,
          const NormStats& stats) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        norm_kernel<device_t<T>, A>
            <<<static_cast<unsigned>(x.rows()), x.cols() >= 2048 ? 256 : 128, 0, exec.gpu->stream>>>(
                dptr<T>(y), optional<A>(stats.mean), stats.rstd.ptr<A>(), dptr<T>(x), dptr<T>(w), optional_in<T>(b),
                x.cols(), spec_of(spec));
    });
    TERA_LAUNCHED();
}

void norm_backward(const Exec& exec, const NormSpec& spec, const NormGrads& grads, ConstTensor dy, ConstTensor x,
                   ConstTensor w, const NormStats& stats) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        ArenaScope scope(*exec.arena);
        std::int64_t n = x.cols(), blocks = std::min<std::int64_t>(x.rows(), 4 * exec.gpu->multiprocessors);
        A* pw = exec.tensor(dtype_of<A>, {blocks, n}).template ptr<A>();
        A* pb = grads.db ? exec.tensor(dtype_of<A>, {blocks, n}).template ptr<A>() : nullptr;
        cudaStream_t stream = exec.gpu->stream;
        with_chunks<64>((n + backward_threads - 1) / backward_threads, [&](auto chunks) {
            norm_backward_kernel<device_t<T>, A, decltype(chunks)::value>
                <<<static_cast<unsigned>(blocks), backward_threads, 0, stream>>>(
                    dptr<T>(grads.dx), pw, pb, dptr<T>(dy), dptr<T>(x), dptr<T>(w), optional<A>(stats.mean),
                    stats.rstd.ptr<A>(), x.rows(), n, spec_of(spec));
        });
        add_partials<A><<<blocks_for(n, 128), 128, 0, stream>>>(grads.dw.ptr<A>(), pw, blocks, n);
        if (pb) add_partials<A><<<blocks_for(n, 128), 128, 0, stream>>>(grads.db.ptr<A>(), pb, blocks, n);
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
        std::int64_t K = counts.head_dim, blocks = std::min<std::int64_t>(qkv.rows(), 16 * exec.gpu->multiprocessors);
        A* partial = exec.tensor(dtype_of<A>, {blocks, 4, K}).template ptr<A>();
        with_chunks<8>((K + 31) / 32, [&](auto chunks) {
            head_norm_backward_kernel<device_t<T>, A, decltype(chunks)::value>
                <<<static_cast<unsigned>(blocks), 32, 0, exec.gpu->stream>>>(
                    dptr<T>(dqkv), partial, dptr<T>(qkv), dptr<T>(weights.wq), dptr<T>(weights.wk),
                    optional<A>(stats.mean), stats.rstd.ptr<A>(), qkv.rows(), static_cast<int>(counts.heads),
                    static_cast<int>(counts.kv_heads), static_cast<int>(K), spec_of(spec));
        });
        add_head_partials<A><<<4, 128, 0, exec.gpu->stream>>>(grads.dwq.ptr<A>(), optional<A>(grads.dbq),
                                                              grads.dwk.ptr<A>(), optional<A>(grads.dbk), partial,
                                                              blocks, static_cast<int>(K));
    });
    TERA_LAUNCHED();
}

}  // namespace tera::ops::cuda
