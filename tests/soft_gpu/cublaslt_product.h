// The arithmetic of cuBLASLt in software: D = epilogue(alpha op(A) op(B) + beta C), column-major.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace soft_gpu::blas {

/// A matrix's type, shape, and elements from one column to the next.
struct Layout {
    cudaDataType_t type;
    std::size_t rows, cols, ld;
};

struct Matrix {
    std::byte* data;
    Layout layout;
};

struct Product {
    Matrix a, b, c, d;  ///< c.data may be null or d's own; it is read only if beta is not 0
    bool a_transposed, b_transposed;
    double alpha, beta;     ///< what f32 has, unless all is f64
    const std::byte* bias;  ///< [rows of D] in D's type, or null
    Matrix gelu_input;      ///< like D: receives what GELU is taken of; its data null: no GELU
    std::size_t m() const { return d.layout.rows; }
    std::size_t n() const { return d.layout.cols; }
    std::size_t k() const { return a_transposed ? a.layout.rows : a.layout.cols; }
};

/// Bytes of an element; 0 of a type that there is no product in.
std::size_t size_of(cudaDataType_t type);

/// Whether there is a product of two matrices of type `in` with results in `out`.
bool has_product(cudaDataType_t in, cudaDataType_t out);

/// Runs it to its end. Sums are of f32, of f64 for f64, always in the same order. Throws Fault if memory is not there,
/// was not written before it is read, or if an output lies where another matrix does.
void multiply(const Product& p);

}  // namespace soft_gpu::blas
