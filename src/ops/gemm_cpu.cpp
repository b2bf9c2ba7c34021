#include <cblas.h>

#include <mutex>

#include "ops/convert.h"
#include "ops/gemm.h"

namespace tera::ops::cpu {
namespace {

void one_blas_thread() {
    static std::once_flag once;
    std::call_once(once, [] { openblas_set_num_threads(1); });
}

blasint to_blas(std::int64_t n) { return static_cast<blasint>(n); }

/// Pieces along M and N. Small products stay whole; the others get about 16 pieces, cut along the longer side first, in
/// multiples of 48, which every kernel of the BLAS likes.
struct Cut {
    std::int64_t m, n;
};
Cut choose_cut(std::int64_t M, std::int64_t N, std::int64_t K) {
    double flops = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
    if (flops < 2e6) return {M, N};
    std::int64_t pieces = flops < 2e8 ? 8 : 16;
    auto piece = [](std::int64_t size, std::int64_t count) {
        std::int64_t p = (size + count - 1) / count;
        return std::max<std::int64_t>(48, (p + 47) / 48 * 48);
    };
    if (N >= M) {
        std::int64_t along_n = std::min<std::int64_t>(pieces, std::max<std::int64_t>(1, N / 96));
        std::int64_t along_m = std::max<std::int64_t>(1, std::min(pieces / along_n, M / 96));
        return {along_m > 1 ? piece(M, along_m) : M, piece(N, along_n)};
    }
    std::int64_t along_m = std::min<std::int64_t>(pieces, std::max<std::int64_t>(1, M / 96));
    std::int64_t along_n = std::max<std::int64_t>(1, std::min(pieces / along_m, N / 96));
    return {piece(M, along_m), along_n > 1 ? piece(N, along_n) : N};
}

template <class A>
void gemm_typed(const Exec& exec, std::int64_t M, std::int64_t N, std::int64_t K, SmallMatrix<A> a, SmallMatrix<A> b,
                A beta, A* c, std::int64_t ldc) {
    Cut cut = choose_cut(M, N, K);
    std::int64_t rows = (M + cut.m - 1) / cut.m, cols = (N + cut.n - 1) / cut.n;
    exec.pool->run(rows * cols, [&](std::int64_t piece) {
        std::int64_t m0 = piece / cols * cut.m, n0 = piece % cols * cut.n;
        SmallMatrix<A> pa = a, pb = b;
        pa.data += a.transposed ? m0 : m0 * a.stride;
        pb.data += b.transposed ? n0 * b.stride : n0;
        gemm_tile<A>(std::min(cut.m, M - m0), std::min(cut.n, N - n0), K, A(1), pa, pb, beta, c + m0 * ldc + n0, ldc);
    });
}

template <class A>
SmallMatrix<A> widen(const Exec& exec, Matrix m, std::int64_t rows, std::int64_t cols) {
    if (m.dtype == dtype_of<A>) return {reinterpret_cast<const A*>(m.data), m.stride, m.transposed};
    if (m.transposed) std::swap(rows, cols);
    Tensor wide = exec.tensor(dtype_of<A>, {rows, cols});
    dispatch_float(m.dtype, [&](auto zero) {
        using T = decltype(zero);
        auto* in = reinterpret_cast<const T*>(m.data);
        parallel_for(exec, rows, grain_rows(cols), [&](std::int64_t r0, std::int64_t r1) {
            for (std::int64_t r = r0; r < r1; ++r) convert_row(wide.ptr<A>() + r * cols, in + r * m.stride, cols);
        });
    });
    return {wide.ptr<A>(), cols, m.transposed};
}

template <class A>
void gemm_widened(const Exec& exec, std::int64_t M, std::int64_t N, std::int64_t K, Matrix a, Matrix b, GemmOutput c) {
    ArenaScope scope(*exec.arena);
    SmallMatrix<A> wa = widen<A>(exec, a, M, K), wb = widen<A>(exec, b, K, N);
    if (c.dtype == dtype_of<A>) {
        gemm_typed<A>(exec, M, N, K, wa, wb, A(c.accumulate), reinterpret_cast<A*>(c.data), c.stride);
        return;
    }
    Tensor wide = exec.tensor(dtype_of<A>, {M, N});
    A* w = wide.ptr<A>();
    dispatch_float(c.dtype, [&](auto zero) {
        using T = decltype(zero);
        T* out = reinterpret_cast<T*>(c.data);
        if (c.accumulate)
            parallel_for(exec, M, grain_rows(N), [&](std::int64_t r0, std::int64_t r1) {
                for (std::int64_t r = r0; r < r1; ++r) convert_row(w + r * N, out + r * c.stride, N);
            });
        gemm_typed<A>(exec, M, N, K, wa, wb, A(c.accumulate), w, N);
        parallel_for(exec, M, grain_rows(N), [&](std::int64_t r0, std::int64_t r1) {
            for (std::int64_t r = r0; r < r1; ++r) convert_row(out + r * c.stride, w + r * N, N);
        });
    });
}

}  // namespace

template <>
void gemm_tile<float>(std::int64_t M, std::int64_t N, std::int64_t K, float alpha, SmallMatrix<float> a,
                      SmallMatrix<float> b, float beta, float* c, std::int64_t ldc) {
    one_blas_thread();
    cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
                to_blas(M), to_blas(N), to_blas(K), alpha, a.data, to_blas(a.stride), b.data, to_blas(b.stride), beta,
                c, to_blas(ldc));
}

template <>
void gemm_tile<double>(std::int64_t M, std::int64_t N, std::int64_t K, double alpha, SmallMatrix<double> a,
                       SmallMatrix<double> b, double beta, double* c, std::int64_t ldc) {
    one_blas_thread();
    cblas_dgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans, b.transposed ? CblasTrans : CblasNoTrans,
                to_blas(M), to_blas(N), to_blas(K), alpha, a.data, to_blas(a.stride), b.data, to_blas(b.stride), beta,
                c, to_blas(ldc));
}

void gemm(const Exec& exec, std::int64_t M, std::int64_t N, std::int64_t K, Matrix a, Matrix b, GemmOutput c) {
    if (M == 0 || N == 0) return;
    if (a.dtype == DType::f64)
        gemm_widened<double>(exec, M, N, K, a, b, c);
    else
        gemm_widened<float>(exec, M, N, K, a, b, c);
}

}  // namespace tera::ops::cpu
