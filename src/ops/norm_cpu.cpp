#include "ops/norm_backends.h"

#include <cmath>

#include "ops/column_sum.h"

namespace tera::ops::cpu {
namespace {

/// One row of either norm: the mean is 0 for RMSNorm, so that both share the rest.
template <class T>
struct RowNorm {
    using A = acc_t<T>;
    std::int64_t n;
    bool rms;
    A one_plus, eps;

    RowNorm(const NormSpec& spec, std::int64_t cols)
        : n(cols), rms(spec.rms), one_plus(spec.one_plus ? A(1) : A(0)), eps(static_cast<A>(spec.eps)) {}

    void forward(T* y, const T* x, const T* w, const T* b, A& mean, A& rstd) const {
        A sum = 0;
        if (!rms) {
#pragma omp simd reduction(+ : sum)
            for (std::int64_t i = 0; i < n; ++i) sum += A(x[i]);
        }
        mean = sum / A(n);
        A squares = 0;
#pragma omp simd reduction(+ : squares)
        for (std::int64_t i = 0; i < n; ++i) {
            A d = A(x[i]) - mean;
            squares += d * d;
        }
        rstd = A(1) / std::sqrt(squares / A(n) + eps);
        for (std::int64_t i = 0; i < n; ++i) {
            A v = (A(x[i]) - mean) * rstd * (one_plus + A(w[i]));
            if (b) v += A(b[i]);
            y[i] = T(v);
        }
    }

    /// dx = rstd (g - xhat mean(g xhat) [- mean(g)]) with g = dy w; added to or stored in dx
    /// (which may be dy itself).
    template <bool add>
    void backward(T* dx, A* dw, A* db, const T* dy, const T* x, const T* w, A mean, A rstd) const {
        A dot = 0, sum = 0;
#pragma omp simd reduction(+ : dot, sum)
        for (std::int64_t i = 0; i < n; ++i) {
            A g = A(dy[i]) * (one_plus + A(w[i])), xhat = (A(x[i]) - mean) * rstd;
            dot += g * xhat;
            sum += g;
        }
        dot /= A(n);
        sum = rms ? A(0) : sum / A(n);
        for (std::int64_t i = 0; i < n; ++i) {
            A d = A(dy[i]), g = d * (one_plus + A(w[i])), xhat = (A(x[i]) - mean) * rstd;
            dw[i] += d * xhat;
            if (db) db[i] += d;
            A v = rstd * (g - sum - xhat * dot);
            dx[i] = T(add ? A(dx[i]) + v : v);
        }
    }
};

template <class T>
const T* optional_ptr(const ConstTensor& t) {
    return t ? t.ptr<T>() : nullptr;
}

}  // namespace

void norm(const Exec& exec, const NormSpec& spec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor b,
          const NormStats& stats) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        std::int64_t n = x.cols();
        RowNorm<T> row(spec, n);
        const T *px = x.ptr<T>(), *pw = w.ptr<T>(), *pb = optional_ptr<T>(b);
        T* py = y.ptr<T>();
        A* rstd = stats.rstd.ptr<A>();
        A* mean = stats.mean ? stats.mean.ptr<A>() : nullptr;
        parallel_for(exec, x.rows(), grain_rows(n), [&](std::int64_t r0, std::int64_t r1) {
            for (std::int64_t r = r0; r < r1; ++r) {
                A m;
                row.forward(py + r * n, px + r * n, pw, pb, m, rstd[r]);
                if (mean) mean[r] = m;
            }
        });
    });
}

void norm_backward(const Exec& exec, const NormSpec& spec, const NormGrads& grads, ConstTensor dy, ConstTensor x,
                   ConstTensor w, const NormStats& stats) {
    if (grads.dx_sum) column_sum(exec, grads.dx_sum, grads.dx);
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        std::int64_t n = x.cols();
        RowNorm<T> row(spec, n);
        const T *px = x.ptr<T>(), *pw = w.ptr<T>(), *pdy = dy.ptr<T>();
        T* dx = grads.dx.ptr<T>();
        const A* rstd = stats.rstd.ptr<A>();
        const A* mean = stats.mean ? stats.mean.ptr<A>() : nullptr;
        ArenaScope scope(*exec.arena);
        A* sums = exec.zeros(dtype_of<A>, {2 * n}).template ptr<A>();
        sum_in_pieces<A>(exec, x.rows(), 2 * n, sums, [&](std::int64_t r0, std::int64_t r1, A* part) {
            for (std::int64_t r = r0; r < r1; ++r)
                row.template backward<true>(dx + r * n, part, grads.db ? part + n : nullptr, pdy + r * n, px + r * n,
                                            pw, mean ? mean[r] : A(0), rstd[r]);
        });
        if (exec.counts()) return;
        A* dw = grads.dw.ptr<A>();
        for (std::int64_t i = 0; i < n; ++i) dw[i] += sums[i];
        if (grads.db)
            for (std::int64_t i = 0; i < n; ++i) grads.db.ptr<A>()[i] += sums[n + i];
    });
}

void head_norm(const Exec& exec, const NormSpec& spec, HeadCounts counts, Tensor out, ConstTensor qkv,
               const HeadNormWeights& weights, const NormStats& stats) {
    dispatch_float(qkv.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        auto [H, G, K] = counts;
        std::int64_t width = qkv.cols(), normed = H + G, k = K, h_count = H;
        RowNorm<T> row(spec, K);
        const T *wq = weights.wq.ptr<T>(), *wk = weights.wk.ptr<T>();
        const T *bq = optional_ptr<T>(weights.bq), *bk = optional_ptr<T>(weights.bk);
        const T* in = qkv.ptr<T>();
        T* po = out.ptr<T>();
        A* rstd = stats.rstd.ptr<A>();
        A* mean = stats.mean ? stats.mean.ptr<A>() : nullptr;
        parallel_for(exec, qkv.rows(), grain_rows(width), [&](std::int64_t t0, std::int64_t t1) {
            for (std::int64_t t = t0; t < t1; ++t) {
                for (std::int64_t h = 0; h < normed; ++h) {
                    bool query = h < h_count;
                    A m;
                    row.forward(po + t * width + h * k, in + t * width + h * k, query ? wq : wk, query ? bq : bk, m,
                                rstd[t * normed + h]);
                    if (mean) mean[t * normed + h] = m;
                }
                std::copy(in + t * width + normed * k, in + (t + 1) * width, po + t * width + normed * k);
            }
        });
    });
}

void head_norm_backward(const Exec& exec, const NormSpec& spec, HeadCounts counts, const HeadNormGrads& grads,
                        Tensor dqkv, ConstTensor qkv, const HeadNormWeights& weights, const NormStats& stats) {
    dispatch_float(qkv.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        auto [H, G, K] = counts;
        std::int64_t width = qkv.cols(), normed = H + G, k = K, h_count = H;
        RowNorm<T> row(spec, K);
        const T *wq = weights.wq.ptr<T>(), *wk = weights.wk.ptr<T>(), *x = qkv.ptr<T>();
        T* d = dqkv.ptr<T>();
        const A* rstd = stats.rstd.ptr<A>();
        const A* mean = stats.mean ? stats.mean.ptr<A>() : nullptr;
        ArenaScope scope(*exec.arena);
        A* sums = exec.zeros(dtype_of<A>, {4 * K}).template ptr<A>();  // dwq, dbq, dwk, dbk
        bool bias = static_cast<bool>(grads.dbq);
        sum_in_pieces<A>(exec, qkv.rows(), 4 * K, sums, [&](std::int64_t t0, std::int64_t t1, A* part) {
            for (std::int64_t t = t0; t < t1; ++t)
                for (std::int64_t h = 0; h < normed; ++h) {
                    A* sum = part + (h < h_count ? 0 : 2 * k);
                    T* dh = d + t * width + h * k;
                    row.template backward<false>(dh, sum, bias ? sum + k : nullptr, dh, x + t * width + h * k,
                                                 h < h_count ? wq : wk, mean ? mean[t * normed + h] : A(0),
                                                 rstd[t * normed + h]);
                }
        });
        if (exec.counts()) return;
        for (std::int64_t i = 0; i < K; ++i) {
            grads.dwq.ptr<A>()[i] += sums[i];
            grads.dwk.ptr<A>()[i] += sums[2 * K + i];
            if (bias) {
                grads.dbq.ptr<A>()[i] += sums[K + i];
                grads.dbk.ptr<A>()[i] += sums[3 * K + i];
            }
        }
    });
}

}  // namespace tera::ops::cpu
