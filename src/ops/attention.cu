// Attention on the GPU: cuDNN's where it has a kernel, else our own on matrix units, and for all that is left (f32,
// f64, heads of odd sizes) one warp per row, up to 256 elements of a head, nothing shared.
#include "ops/attention_cudnn.h"
#include "ops/attention_heads.cuh"
#include "ops/attention_mma.h"
#include "ops/attention_sm90.h"

namespace tera::ops::cuda {
namespace {

constexpr int lanes_of = 8;  // a lane holds up to 8 of at most 256 elements

template <class T, class A>
__device__ inline void load_row(A (&out)[lanes_of], const T* row, int K) {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int j = 0; j < lanes_of; ++j) out[j] = lane + 32 * j < K ? static_cast<A>(widen(row[lane + 32 * j])) : A(0);
}
template <class T, class A>
__device__ inline void store_row(T* row, const A (&in)[lanes_of], int K) {
    int lane = threadIdx.x & 31;
#pragma unroll
    for (int j = 0; j < lanes_of; ++j)
        if (lane + 32 * j < K) row[lane + 32 * j] = narrow<T>(in[j]);
}
template <class A>
__device__ inline A dot_rows(const A (&a)[lanes_of], const A (&b)[lanes_of]) {
    A s = 0;
#pragma unroll
    for (int j = 0; j < lanes_of; ++j) s += a[j] * b[j];
    return warp_sum(s);
}

template <class T, class A>
__global__ void forward_kernel(Rows<T> o, A* lse, Rows<const T> q, Rows<const T> k, Rows<const T> v, Heads n) {
    std::int64_t item = (blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x) / 32;
    if (item >= n.B * n.H * n.Sq) return;
    std::int64_t row = item % n.Sq, h = item / n.Sq % n.H, b = item / (n.Sq * n.H), g = h / (n.H / n.G);
    int K = static_cast<int>(n.K);
    A qr[lanes_of], kr[lanes_of], out[lanes_of] = {}, top = A(-3.0e38), sum = 0;
    load_row(qr, q.at(n, row, b, h), K);
    for (std::int64_t key = n.first_key(b, row); key < n.end_key(row); ++key) {
        load_row(kr, k.at(n, key, b, g), K);
        A s = dot_rows(qr, kr) * static_cast<A>(n.scale);
        A higher = s > top ? s : top, shrink = exp_of(top - higher), p = exp_of(s - higher);
        top = higher;
        sum = sum * shrink + p;
        A kept = n.drops() ? p * static_cast<A>(n.keep(b, h, row, key)) : p;
        load_row(kr, v.at(n, key, b, g), K);
#pragma unroll
        for (int j = 0; j < lanes_of; ++j) out[j] = out[j] * shrink + kept * kr[j];
    }
    bool any = sum > 0;  // else there was no key to see
#pragma unroll
    for (int j = 0; j < lanes_of; ++j) out[j] = any ? out[j] / sum : A(0);
    store_row(o.at(n, row, b, h), out, K);
    if ((threadIdx.x & 31) == 0) lse[(b * n.H + h) * n.Sq + row] = any ? top + static_cast<A>(log(sum)) : A(-INFINITY);
}

template <class T, class A>
__global__ void query_gradient(Rows<T> dq, A* delta, Rows<const T> d_o, Rows<const T> o, const A* lse, Rows<const T> q,
                               Rows<const T> k, Rows<const T> v, Heads n) {
    std::int64_t item = (blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x) / 32;
    if (item >= n.B * n.H * n.Sq) return;
    std::int64_t row = item % n.Sq, h = item / n.Sq % n.H, b = item / (n.Sq * n.H), g = h / (n.H / n.G);
    int K = static_cast<int>(n.K);
    A qr[lanes_of], dor[lanes_of], other[lanes_of], sum[lanes_of] = {};
    load_row(qr, q.at(n, row, b, h), K);
    load_row(dor, d_o.at(n, row, b, h), K);
    load_row(other, o.at(n, row, b, h), K);
    A shift = lse[(b * n.H + h) * n.Sq + row], d = dot_rows(dor, other);
    if ((threadIdx.x & 31) == 0) delta[(b * n.H + h) * n.Sq + row] = d;
    for (std::int64_t key = n.first_key(b, row); key < n.end_key(row); ++key) {
        load_row(other, v.at(n, key, b, g), K);
        A dp = dot_rows(dor, other);
        if (n.drops()) dp *= static_cast<A>(n.keep(b, h, row, key));
        load_row(other, k.at(n, key, b, g), K);
        A p = exp_of(dot_rows(qr, other) * static_cast<A>(n.scale) - shift),
          ds = p * (dp - d) * static_cast<A>(n.scale);
#pragma unroll
        for (int j = 0; j < lanes_of; ++j) sum[j] += ds * other[j];
    }
    store_row(dq.at(n, row, b, h), sum, K);
}

template <class T, class A>
__global__ void key_gradient(Rows<T> dk, Rows<T> dv, const A* delta, Rows<const T> d_o, const A* lse, Rows<const T> q,
                             Rows<const T> k, Rows<const T> v, Heads n) {
    std::int64_t item = (blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x) / 32;
    if (item >= n.B * n.G * n.Sk) return;
    std::int64_t key = item % n.Sk, g = item / n.Sk % n.G, b = item / (n.Sk * n.G);
    int K = static_cast<int>(n.K);
    A kr[lanes_of], vr[lanes_of], qr[lanes_of], dor[lanes_of], sum_k[lanes_of] = {}, sum_v[lanes_of] = {};
    load_row(kr, k.at(n, key, b, g), K);
    load_row(vr, v.at(n, key, b, g), K);
    std::int64_t per_group = n.H / n.G, first = n.causal ? key - (n.Sk - n.Sq) : 0;
    for (std::int64_t h = g * per_group; h < (g + 1) * per_group; ++h)
        for (std::int64_t row = first > 0 ? first : 0; row < n.Sq; ++row) {
            if (key < n.first_key(b, row)) continue;
            load_row(qr, q.at(n, row, b, h), K);
            load_row(dor, d_o.at(n, row, b, h), K);
            std::int64_t at = (b * n.H + h) * n.Sq + row;
            A p = exp_of(dot_rows(qr, kr) * static_cast<A>(n.scale) - lse[at]), dp = dot_rows(dor, vr), kept = p;
            if (n.drops()) {
                A factor = static_cast<A>(n.keep(b, h, row, key));
                kept = p * factor;
                dp *= factor;
            }
            A ds = p * (dp - delta[at]) * static_cast<A>(n.scale);
#pragma unroll
            for (int j = 0; j < lanes_of; ++j) {
                sum_k[j] += ds * qr[j];
                sum_v[j] += kept * dor[j];
            }
        }
    store_row(dk.at(n, key, b, g), sum_k, K);
    store_row(dv.at(n, key, b, g), sum_v, K);
}

/// One block per row of the part.
template <class T, class A>
__global__ void merge_kernel(A* o, A* lse, const T* more, const A* lse_more, std::int64_t B, std::int64_t H,
                             std::int64_t K, std::int64_t S, std::int64_t Sp, std::int64_t first) {
    const std::int64_t t = blockIdx.x, q = t / B, b = t % B, width = H * K;
    for (std::int64_t i = threadIdx.x; i < width; i += blockDim.x) {
        A before = lse[(b * H + i / K) * S + first + q], other = lse_more[(b * H + i / K) * Sp + q];
        A top = before > other ? before : other;
        if (top == A(-INFINITY)) continue;  // neither saw a key
        A old_weight = exp_of(before - top), weight = exp_of(other - top);
        A& to = o[(first * B + t) * width + i];
        to = (old_weight * to + weight * static_cast<A>(widen(more[t * width + i]))) / (old_weight + weight);
    }
    __syncthreads();  // the old lse is read by all
    for (std::int64_t h = threadIdx.x; h < H; h += blockDim.x) {
        A& to = lse[(b * H + h) * S + first + q];
        A other = lse_more[(b * H + h) * Sp + q], top = to > other ? to : other;
        if (top != A(-INFINITY)) to = top + static_cast<A>(log(exp_of(to - top) + exp_of(other - top)));
    }
}

}  // namespace

void attention(const Exec& exec, const AttentionSpec& spec, const AttentionOut& out, HeadRows<ConstTensor> q,
               HeadRows<ConstTensor> k, HeadRows<ConstTensor> v) {
    if (spec.K > 32 * lanes_of)  // a dry run finds out
        usage_error("heads of ", spec.K, " elements: attention on GPUs takes up to ", 32 * lanes_of,
                    "; lower --kv-channels, use more --num-attention-heads, or --device cpu");
    if (cudnn_attention(exec, spec, out, q, k, v) || exec.counts()) return;
    if (sm90_attention(exec, spec, out, q, k, v) || mma_attention(exec, spec, out, q, k, v)) return;
    dispatch_float(q.data.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        forward_kernel<device_t<T>, A>
            <<<blocks_for(spec.B * spec.H * spec.Sq, 4, INT32_MAX), 128, 0, exec.gpu->stream>>>(
                rows<T>(HeadRows<Tensor>{out.o, 0}), out.lse.ptr<A>(), rows<T>(q), rows<T>(k), rows<T>(v),
                heads_of(spec));
    });
    TERA_LAUNCHED();
}

void merge_attention(const Exec& exec, const AttentionOut& all, const AttentionOut& part, std::int64_t first) {
    const Shape &a = all.lse.shape, &p = part.lse.shape;
    if (part.o.numel() == 0) return;
    dispatch_float(part.o.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        merge_kernel<device_t<T>, A><<<static_cast<unsigned>(part.o.rows()), 256, 0, exec.gpu->stream>>>(
            all.o.ptr<A>(), all.lse.ptr<A>(), dptr<T>(part.o), part.lse.ptr<A>(), a[0], a[1], all.o.cols() / a[1], a[2],
            p[2], first);
    });
    TERA_LAUNCHED();
}

void attention_backward(const Exec& exec, const AttentionSpec& spec, const AttentionGrads& grads, ConstTensor d_o,
                        HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                        const AttentionOut& out) {
    if (cudnn_attention_backward(exec, spec, grads, d_o, q, k, v, out)) return;
    if (sm90_attention_backward(exec, spec, grads, d_o, q, k, v, out)) return;
    if (mma_attention_backward(exec, spec, grads, d_o, q, k, v, out)) return;
    dispatch_float(q.data.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        ArenaScope scope(*exec.arena);
        A* delta = exec.tensor(dtype_of<A>, out.lse.shape).template ptr<A>();
        if (exec.counts()) return;
        auto o = rows<T>(HeadRows<ConstTensor>{out.o, 0}), dor = rows<T>(HeadRows<ConstTensor>{d_o, 0});
        query_gradient<device_t<T>, A>
            <<<blocks_for(spec.B * spec.H * spec.Sq, 4, INT32_MAX), 128, 0, exec.gpu->stream>>>(
                rows<T>(grads.dq), delta, dor, o, out.lse.ptr<A>(), rows<T>(q), rows<T>(k), rows<T>(v), heads_of(spec));
        key_gradient<device_t<T>, A><<<blocks_for(spec.B * spec.G * spec.Sk, 4, INT32_MAX), 128, 0, exec.gpu->stream>>>(
            rows<T>(grads.dk), rows<T>(grads.dv), delta, dor, out.lse.ptr<A>(), rows<T>(q), rows<T>(k), rows<T>(v),
            heads_of(spec));
        TERA_LAUNCHED();
    });
}

}  // namespace tera::ops::cuda
