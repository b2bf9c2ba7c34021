#include "ops/embedding.h"

namespace tera::ops::cpu {

void embedding(const Exec& exec, Tensor x, ConstTensor word, ConstTensor position, const std::int32_t* tokens,
               const std::int32_t* positions);
void embedding_part(const Exec& exec, Tensor x, ConstTensor table, TableRows rows, const std::int32_t* tokens);
void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices,
                        TableRows rows);

void embedding(const Exec& exec, Tensor x, ConstTensor word, ConstTensor position, const std::int32_t* tokens,
               const std::int32_t* positions) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        std::int64_t D = x.cols(), words = word.rows(), places = position ? position.rows() : 0;
        parallel_for(exec, x.rows(), grain_rows(D), [&](std::int64_t t0, std::int64_t t1) {
            for (std::int64_t t = t0; t < t1; ++t) {
                TERA_CHECK(tokens[t] >= 0 && tokens[t] < words, "token ", tokens[t], " of ", words);
                const T* w = word.ptr<T>() + tokens[t] * D;
                T* o = x.ptr<T>() + t * D;
                if (!position) {
                    std::copy_n(w, D, o);
                    continue;
                }
                TERA_CHECK(positions[t] >= 0 && positions[t] < places, "position ", positions[t], " of ", places);
                const T* p = position.ptr<T>() + positions[t] * D;
                for (std::int64_t i = 0; i < D; ++i) o[i] = T(A(w[i]) + A(p[i]));
            }
        });
    });
}

void embedding_part(const Exec& exec, Tensor x, ConstTensor table, TableRows rows, const std::int32_t* tokens) {
    dispatch_float(x.dtype, [&](auto zero) {
        using T = decltype(zero);
        std::int64_t D = x.cols(), here = table.rows();
        parallel_for(exec, x.rows(), grain_rows(D), [&](std::int64_t t0, std::int64_t t1) {
            for (std::int64_t t = t0; t < t1; ++t) {
                TERA_CHECK(tokens[t] >= 0 && tokens[t] < rows.total, "token ", tokens[t], " of ", rows.total);
                std::int64_t row = tokens[t] - rows.first;
                T* o = x.ptr<T>() + t * D;
                if (row >= 0 && row < here)
                    std::copy_n(table.ptr<T>() + row * D, D, o);
                else
                    std::fill_n(o, D, T{});
            }
        });
    });
}

void embedding_backward(const Exec& exec, Tensor table_grad, ConstTensor dx, const std::int32_t* indices,
                        TableRows rows) {
    if (exec.counts()) return;
    dispatch_float(dx.dtype, [&](auto zero) {
        using T = decltype(zero);
        using A = acc_t<T>;
        std::int64_t D = dx.cols(), tokens = dx.rows(), here = table_grad.rows();
        A* table = table_grad.ptr<A>();
        const T* d = dx.ptr<T>();
        // Cut by columns: every task walks the tokens in order, so a row met twice is always summed the same way.
        parallel_for(exec, D, 128, [&](std::int64_t c0, std::int64_t c1) {
            for (std::int64_t t = 0; t < tokens; ++t) {
                std::int64_t at = indices[t] - rows.first;
                if (at < 0 || at >= here) continue;
                A* row = table + at * D;
                for (std::int64_t i = c0; i < c1; ++i) row[i] += A(d[t * D + i]);
            }
        });
    });
}

}  // namespace tera::ops::cpu
