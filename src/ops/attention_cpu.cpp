// One task per (sequence, kv head): the task owns its dk and dv, so nothing is shared and the order of additions is
// fixed. Inside, blocks of queries meet all keys they may see as small matrix products.
#include "ops/attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "ops/attention_dropout.h"
#include "ops/convert.h"
#include "ops/gemm.h"
#include "ops/vec_math.h"

namespace tera::ops::cpu {

void attention(const Exec& exec, const AttentionSpec& spec, const AttentionOut& out, HeadRows<ConstTensor> q,
               HeadRows<ConstTensor> k, HeadRows<ConstTensor> v);
void attention_backward(const Exec& exec, const AttentionSpec& spec, const AttentionGrads& grads, ConstTensor d_o,
                        HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                        const AttentionOut& out);
void merge_attention(const Exec& exec, const AttentionOut& all, const AttentionOut& part, std::int64_t first);

namespace {

constexpr std::int64_t query_block = 64;

/// Scratch of one thread, kept from call to call.
template <class A>
struct Scratch {
    std::vector<A> memory;
    A* get(std::int64_t n) {
        if (static_cast<std::int64_t>(memory.size()) < n) memory.resize(static_cast<std::size_t>(n));
        return memory.data();
    }
};
template <class A>
Scratch<A>& scratch(int which) {
    thread_local Scratch<A> buffers[12];
    return buffers[which];
}

template <class T>
struct Task {
    using A = acc_t<T>;
    const AttentionSpec& spec;
    std::int64_t b, g;
    AttentionDropout dropout{spec};

    std::int64_t heads_per_group() const { return spec.H / spec.G; }
    std::int64_t shift() const { return spec.Sk - spec.Sq; }

    /// Rows [s0, s0+n) of head h as a contiguous [n,K] matrix.
    A* gather(A* out, const HeadRows<ConstTensor>& from, std::int64_t h, std::int64_t s0, std::int64_t n) const {
        const T* base = from.data.template ptr<T>() + from.offset + h * spec.K;
        std::int64_t width = from.data.cols();
        for (std::int64_t i = 0; i < n; ++i)
            convert_row(out + i * spec.K, base + ((s0 + i) * spec.B + b) * width, spec.K);
        return out;
    }
    void scatter(const HeadRows<Tensor>& to, std::int64_t h, std::int64_t s0, std::int64_t n, const A* in) const {
        T* base = to.data.template ptr<T>() + to.offset + h * spec.K;
        std::int64_t width = to.data.cols();
        for (std::int64_t i = 0; i < n; ++i)
            convert_row(base + ((s0 + i) * spec.B + b) * width, in + i * spec.K, spec.K);
    }

    /// Query q sees keys [first_key, end_key), which may be none.
    std::int64_t first_key(std::int64_t q) const {
        if (!spec.doc_start) return 0;
        return std::min(spec.whole.key.before(spec.doc_start[q * spec.B + b]), end_key(q));
    }
    std::int64_t end_key(std::int64_t q) const { return spec.causal ? q + shift() + 1 : spec.Sk; }

    /// Keys [begin, end) that some query of the block [q0, q0+n) may see.
    void key_range(std::int64_t q0, std::int64_t n, std::int64_t& begin, std::int64_t& end) const {
        begin = spec.Sk;
        for (std::int64_t q = q0; q < q0 + n; ++q) begin = std::min(begin, first_key(q));
        end = end_key(q0 + n - 1);
    }

    /// Multiplies the kept probabilities by 1/(1-p) and zeroes the others; p_row covers keys [k0, k1).
    void drop(A* p_row, std::int64_t h, std::int64_t q, std::int64_t k0, std::int64_t k1) const {
        const A factor = static_cast<A>(dropout.factor());
        const std::uint64_t first = dropout.first_call(h, q);
        U32x4 calls[4] = {};
        for (std::int64_t k = k0, block = -1; k < k1; ++k) {
            const std::int64_t four = AttentionDropout::four(spec.whole.key.at(k));
            if (four / 4 != block) {
                block = four / 4;
                for (std::int64_t i = 0; i < 4; ++i) calls[i] = dropout.words(spec.sample[b], first, 4 * block + i);
            }
            p_row[k - k0] = dropout.number(calls[four % 4], q, k) < dropout.threshold ? A(0) : p_row[k - k0] * factor;
        }
    }
};

/// p[i] = exp(scale s[i] - max) over [lo, hi), zero elsewhere in [0, n); returns (max, sum), of nothing (-inf, 0).
template <class A>
std::pair<A, A> exp_row(A* s, std::int64_t lo, std::int64_t hi, std::int64_t n, A scale) {
    A top = -std::numeric_limits<A>::infinity();
#pragma omp simd reduction(max : top)
    for (std::int64_t i = lo; i < hi; ++i) top = s[i] > top ? s[i] : top;
    top *= scale;
    A sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = lo; i < hi; ++i) {
        A e = fast_exp(s[i] * scale - top);
        s[i] = e;
        sum += e;
    }
    for (std::int64_t i = 0; i < lo; ++i) s[i] = 0;
    for (std::int64_t i = hi; i < n; ++i) s[i] = 0;
    return {top, sum};
}

template <class T>
void forward_task(const Task<T>& task, const AttentionOut& out, const HeadRows<ConstTensor>& q,
                  const HeadRows<ConstTensor>& k, const HeadRows<ConstTensor>& v) {
    using A = acc_t<T>;
    const AttentionSpec& s = task.spec;
    std::int64_t K = s.K;
    A scale = static_cast<A>(s.scale);
    A* ks = task.gather(scratch<A>(0).get(s.Sk * K), k, task.g, 0, s.Sk);
    A* vs = task.gather(scratch<A>(1).get(s.Sk * K), v, task.g, 0, s.Sk);
    A* qs = scratch<A>(2).get(query_block * K);
    A* os = scratch<A>(3).get(query_block * K);
    A* scores = scratch<A>(4).get(query_block * s.Sk);
    HeadRows<Tensor> o{out.o, 0};
    for (std::int64_t r = 0; r < task.heads_per_group(); ++r) {
        std::int64_t h = task.g * task.heads_per_group() + r;
        for (std::int64_t q0 = 0; q0 < s.Sq; q0 += query_block) {
            std::int64_t n = std::min(query_block, s.Sq - q0), k0, k1;
            task.key_range(q0, n, k0, k1);
            std::int64_t m = k1 - k0;
            task.gather(qs, q, h, q0, n);
            gemm_tile<A>(n, m, K, {qs, K, false}, {ks + k0 * K, K, true}, false, scores, m);
            for (std::int64_t i = 0; i < n; ++i) {
                A* row = scores + i * m;
                std::int64_t lo = task.first_key(q0 + i) - k0, hi = task.end_key(q0 + i) - k0;
                auto [top, sum] = exp_row(row, lo, hi, m, scale);
                A inverse = A(1) / sum;
                for (std::int64_t j = lo; j < hi; ++j) row[j] *= inverse;
                out.lse.template ptr<A>()[(task.b * s.H + h) * s.Sq + q0 + i] = top + std::log(sum);
                if (s.dropout > 0) task.drop(row + lo, h, q0 + i, k0 + lo, k0 + hi);
            }
            gemm_tile<A>(n, K, m, {scores, m, false}, {vs + k0 * K, K, false}, false, os, K);
            task.scatter(o, h, q0, n, os);
        }
    }
}

template <class T>
void backward_task(const Task<T>& task, const AttentionGrads& grads, ConstTensor d_o, const HeadRows<ConstTensor>& q,
                   const HeadRows<ConstTensor>& k, const HeadRows<ConstTensor>& v, const AttentionOut& out) {
    using A = acc_t<T>;
    const AttentionSpec& s = task.spec;
    std::int64_t K = s.K;
    A scale = static_cast<A>(s.scale);
    A* ks = task.gather(scratch<A>(0).get(s.Sk * K), k, task.g, 0, s.Sk);
    A* vs = task.gather(scratch<A>(1).get(s.Sk * K), v, task.g, 0, s.Sk);
    A* qs = scratch<A>(2).get(query_block * K);
    A* dos = scratch<A>(3).get(query_block * K);
    A* p = scratch<A>(4).get(query_block * s.Sk);                       // probabilities
    A* dp = scratch<A>(5).get(query_block * s.Sk);                      // their gradient, then that of the scores
    A* pd = s.dropout > 0 ? scratch<A>(6).get(query_block * s.Sk) : p;  // probabilities after dropout
    A* os = scratch<A>(7).get(query_block * K);
    A* dqs = scratch<A>(8).get(query_block * K);
    A* dks = scratch<A>(9).get(s.Sk * K);
    A* dvs = scratch<A>(10).get(s.Sk * K);
    std::fill_n(dks, s.Sk * K, A(0));
    std::fill_n(dvs, s.Sk * K, A(0));
    HeadRows<ConstTensor> o{out.o, 0}, dor{d_o, 0};
    const A* lse = out.lse.template ptr<A>();
    for (std::int64_t r = 0; r < task.heads_per_group(); ++r) {
        std::int64_t h = task.g * task.heads_per_group() + r;
        for (std::int64_t q0 = 0; q0 < s.Sq; q0 += query_block) {
            std::int64_t n = std::min(query_block, s.Sq - q0), k0, k1;
            task.key_range(q0, n, k0, k1);
            std::int64_t m = k1 - k0;
            task.gather(qs, q, h, q0, n);
            task.gather(dos, dor, h, q0, n);
            task.gather(os, o, h, q0, n);
            gemm_tile<A>(n, m, K, {qs, K, false}, {ks + k0 * K, K, true}, false, p, m);
            gemm_tile<A>(n, m, K, {dos, K, false}, {vs + k0 * K, K, true}, false, dp, m);
            for (std::int64_t i = 0; i < n; ++i) {
                A *row = p + i * m, *drow = dp + i * m;
                std::int64_t lo = task.first_key(q0 + i) - k0, hi = task.end_key(q0 + i) - k0;
                A shift = lse[(task.b * s.H + h) * s.Sq + q0 + i];
                for (std::int64_t j = 0; j < lo; ++j) row[j] = 0;
                for (std::int64_t j = hi; j < m; ++j) row[j] = 0;
#pragma omp simd
                for (std::int64_t j = lo; j < hi; ++j) row[j] = fast_exp(row[j] * scale - shift);
                if (s.dropout > 0) {  // the mask acts on p for dv, and on dp for the scores
                    std::copy_n(row, m, pd + i * m);
                    task.drop(pd + i * m + lo, h, q0 + i, k0 + lo, k0 + hi);
                    task.drop(drow + lo, h, q0 + i, k0 + lo, k0 + hi);
                }
                A delta = 0;
                const A *orow = os + i * K, *dorow = dos + i * K;
#pragma omp simd reduction(+ : delta)
                for (std::int64_t d = 0; d < K; ++d) delta += orow[d] * dorow[d];
#pragma omp simd
                for (std::int64_t j = 0; j < m; ++j) drow[j] = row[j] * (drow[j] - delta) * scale;
            }
            gemm_tile<A>(n, K, m, {dp, m, false}, {ks + k0 * K, K, false}, false, dqs, K);
            gemm_tile<A>(m, K, n, {dp, m, true}, {qs, K, false}, true, dks + k0 * K, K);
            gemm_tile<A>(m, K, n, {pd, m, true}, {dos, K, false}, true, dvs + k0 * K, K);
            task.scatter(grads.dq, h, q0, n, dqs);
        }
    }
    task.scatter(grads.dk, task.g, 0, s.Sk, dks);
    task.scatter(grads.dv, task.g, 0, s.Sk, dvs);
}

/// Row t of the part, that is query t/B of sequence t%B.
template <class T>
void merge_row(const AttentionOut& all, const AttentionOut& part, std::int64_t first, std::int64_t t) {
    using A = acc_t<T>;
    const std::int64_t B = all.lse.shape[0], H = all.lse.shape[1], K = all.o.cols() / H;
    const std::int64_t q = t / B, b = t % B;
    A* o = all.o.ptr<A>() + (first * B + t) * H * K;
    const T* more = part.o.ptr<T>() + t * H * K;
    for (std::int64_t h = 0; h < H; ++h, o += K, more += K) {
        A& lse = all.lse.ptr<A>()[(b * H + h) * all.lse.shape[2] + first + q];
        const A other = part.lse.ptr<A>()[(b * H + h) * part.lse.shape[2] + q], top = std::max(lse, other);
        if (top == -std::numeric_limits<A>::infinity()) continue;  // neither saw a key
        const A old_weight = std::exp(lse - top), weight = std::exp(other - top), sum = old_weight + weight;
        lse = top + std::log(sum);
        for (std::int64_t d = 0; d < K; ++d) o[d] = (old_weight * o[d] + weight * static_cast<A>(more[d])) / sum;
    }
}

}  // namespace

void merge_attention(const Exec& exec, const AttentionOut& all, const AttentionOut& part, std::int64_t first) {
    dispatch_float(part.o.dtype, [&](auto zero) {
        using T = decltype(zero);
        parallel_for(exec, part.o.rows(), grain_rows(part.o.cols()), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t t = begin; t < end; ++t) merge_row<T>(all, part, first, t);
        });
    });
}

void attention(const Exec& exec, const AttentionSpec& spec, const AttentionOut& out, HeadRows<ConstTensor> q,
               HeadRows<ConstTensor> k, HeadRows<ConstTensor> v) {
    if (exec.counts()) return;
    dispatch_float(q.data.dtype, [&](auto zero) {
        using T = decltype(zero);
        exec.pool->run(spec.B * spec.G, [&](std::int64_t i) {
            forward_task(Task<T>{spec, i / spec.G, i % spec.G}, out, q, k, v);
        });
    });
}

void attention_backward(const Exec& exec, const AttentionSpec& spec, const AttentionGrads& grads, ConstTensor d_o,
                        HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                        const AttentionOut& out) {
    if (exec.counts()) return;
    dispatch_float(q.data.dtype, [&](auto zero) {
        using T = decltype(zero);
        exec.pool->run(spec.B * spec.G, [&](std::int64_t i) {
            backward_task(Task<T>{spec, i / spec.G, i % spec.G}, grads, d_o, q, k, v, out);
        });
    });
}

}  // namespace tera::ops::cpu
