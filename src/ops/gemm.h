// General matrix product on the CPU: C = op(A) op(B) + beta C, row-major. op is the transpose or nothing.
//
// Every element is the same sum in the same order whatever the tile, the thread or the other rows and columns
// (ops/gemm_kernel.h): the bits are the same for any number of threads, and a row alone gives what it gives among
// others. bf16 and f16 inputs are widened to f32 on the way in.
#pragma once

#include "core/exec.h"

namespace tera::ops {

struct Matrix {
    const std::byte* data;
    DType dtype;
    std::int64_t stride;      ///< elements between rows as stored
    bool transposed = false;  ///< use the transpose of what is stored
};

namespace cpu {

/// C [M,N] (dtype c_dtype, row stride ldc) = A [M,K] B [K,N] + (accumulate ? C : 0).
struct GemmOutput {
    std::byte* data;
    DType dtype;
    std::int64_t stride;
    bool accumulate;
};
void gemm(const Exec& exec, std::int64_t M, std::int64_t N, std::int64_t K, Matrix a, Matrix b, GemmOutput c);

/// C [M,N] = A B + (accumulate ? C : 0) on the calling thread: float or double.
template <class A>
struct SmallMatrix {
    const A* data;
    std::int64_t stride;
    bool transposed = false;
};
template <class A>
void gemm_tile(std::int64_t M, std::int64_t N, std::int64_t K, SmallMatrix<A> a, SmallMatrix<A> b, bool accumulate,
               A* c, std::int64_t ldc);

}  // namespace cpu
}  // namespace tera::ops
