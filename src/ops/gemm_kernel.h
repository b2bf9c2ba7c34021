// The inside of a matrix product: panels and the kernel that multiplies two of them.
//
// A strip of rows of A (or of columns of B) is copied into a panel [K][width], so that the kernel reads both operands
// forwards. The kernel keeps a tile of kernel_rows x kernel_cols sums in registers and runs over K; every sum is one
// chain of fused multiply-adds in the order of K. So an element of the product depends on its row, its column and K
// alone: any cut into tiles and any number of threads gives the same bits, and so does any other M or N.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ops/convert.h"

namespace tera::ops::cpu {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64, kernel_rows = 8;
#elif defined(__AVX__)
inline constexpr int vector_bytes = 32, kernel_rows = 4;  // 16 registers: 12 sums, 3 of B, 1 of A
#else
inline constexpr int vector_bytes = 16, kernel_rows = 8;
#endif
inline constexpr int kernel_vectors = 3;
inline constexpr std::int64_t k_block = 384;  ///< sums go to memory after so many terms

template <class A>
struct Vector {
    static constexpr int lanes = vector_bytes / static_cast<int>(sizeof(A));
    typedef A type __attribute__((vector_size(vector_bytes)));
    typedef A unaligned __attribute__((vector_size(vector_bytes), aligned(alignof(A)), may_alias));

    static type load(const A* p) { return *reinterpret_cast<const unaligned*>(p); }
    static void store(A* p, type v) { *reinterpret_cast<unaligned*>(p) = v; }
};

template <class A>
inline constexpr int kernel_cols = kernel_vectors* Vector<A>::lanes;

/// a0 b0 a1 b1 ... of the lower (upper) halves of a and b.
template <bool upper, class V, int... i>
V interleave(V a, V b, std::integer_sequence<int, i...>) {
    constexpr int n = sizeof...(i), from = upper ? n / 2 : 0;
    return __builtin_shufflevector(a, b, (from + i / 2 + i % 2 * n)...);
}

/// The same elements, transposed: (r, c) moves to place c * rows + r of the whole. One perfect shuffle of everything
/// rotates the bits of the place by one; log2(rows) of them swap row and column.
template <int rows, class A>
void transpose(typename Vector<A>::type* v) {
    constexpr std::make_integer_sequence<int, Vector<A>::lanes> all{};
#pragma GCC unroll 8
    for (int step = 1; step < rows; step *= 2) {
        typename Vector<A>::type shuffled[rows];
#pragma GCC unroll 16
        for (int i = 0; i < rows / 2; ++i) {
            shuffled[2 * i] = interleave<false>(v[i], v[i + rows / 2], all);
            shuffled[2 * i + 1] = interleave<true>(v[i], v[i + rows / 2], all);
        }
#pragma GCC unroll 16
        for (int i = 0; i < rows; ++i) v[i] = shuffled[i];
    }
}

/// A strip of an operand: element (w, k) at [w * stride + k] if k_contiguous, else at [k * stride + w].
template <class T>
struct Strip {
    const T* data;
    std::int64_t stride;
    bool k_contiguous;

    const T* at(std::int64_t w, std::int64_t k) const {
        return data + (k_contiguous ? w * stride + k : k * stride + w);
    }
};

template <class A, class T>
typename Vector<A>::type load_as(const T* p) {
    if constexpr (std::is_same_v<A, T>) {
        return Vector<A>::load(p);
    } else {
        A wide[Vector<A>::lanes];
        convert_row(wide, p, Vector<A>::lanes);
        return Vector<A>::load(wide);
    }
}

/// out[k][0..group) = `group` rows of a k-contiguous strip; rows of out are `width` apart.
template <int group, int width, class A, class T>
void pack_group(A* out, const Strip<T>& in, std::int64_t K) {
    constexpr int lanes = Vector<A>::lanes;
    static_assert(group == lanes || group == width);
    std::int64_t k = 0;
    for (; k + lanes <= K; k += lanes) {
        typename Vector<A>::type v[group];
#pragma GCC unroll 16
        for (int w = 0; w < group; ++w) v[w] = load_as<A>(in.data + w * in.stride + k);
        transpose<group, A>(v);
#pragma GCC unroll 16
        for (int i = 0; i < group; ++i)
            Vector<A>::store(out + (group == width ? k * width + i * lanes : (k + i) * width), v[i]);
    }
    for (; k < K; ++k)
        for (int w = 0; w < group; ++w) convert_row(out + k * width + w, in.data + w * in.stride + k, 1);
}

/// out[K][width] = the `used` first rows of a k-contiguous strip, then zeros.
template <int width, class A, class T>
void pack_panel(A* out, const Strip<T>& in, std::int64_t used, std::int64_t K) {
    constexpr int group = width == kernel_rows ? width : Vector<A>::lanes;
    std::int64_t w = 0;
    for (; w + group <= used; w += group) pack_group<group, width>(out + w, Strip<T>{in.at(w, 0), in.stride, true}, K);
    for (; w < width; ++w)
        for (std::int64_t k = 0; k < K; ++k) {
            out[k * width + w] = A(0);
            if (w < used) convert_row(out + k * width + w, in.at(w, k), 1);
        }
}

/// out[panel][K][width] = the `used` first elements of the strip at every k, cut into panels, the last filled up with
/// zeros.
template <int width, class A, class T>
void pack_panels(A* out, const Strip<T>& in, std::int64_t used, std::int64_t K) {
    if (in.k_contiguous) {
        for (std::int64_t w = 0; w < used; w += width)
            pack_panel<width>(out + w * K, Strip<T>{in.at(w, 0), in.stride, true},
                              std::min<std::int64_t>(width, used - w), K);
        return;
    }
    constexpr int ahead = 12, line = vector_bytes / static_cast<int>(sizeof(T));  // rows the prefetch runs ahead
    std::int64_t whole = used / width * width;
    for (std::int64_t k = 0; k < K; ++k) {  // all panels at once: a row of the operand is read in one go
        const T* row = in.data + k * in.stride;
        for (std::int64_t w = 0; w < used; w += line) __builtin_prefetch(row + ahead * in.stride + w);
        for (std::int64_t w = 0; w < whole; w += width) convert_row(out + w * K + k * width, row + w, width);
        if (whole < used) {
            A* last = out + whole * K + k * width;
            convert_row(last, row + whole, used - whole);
            std::fill(last + (used - whole), last + width, A(0));
        }
    }
}

/// c [kernel_rows, vectors * lanes] (+)= the product of two panels, of which B's may be wider.
template <int vectors, class A>
[[gnu::noinline]] void multiply_panels(std::int64_t K, const A* __restrict a, const A* __restrict b, A* c,
                                       std::int64_t ldc, bool accumulate) {
    using V = Vector<A>;
    typename V::type sum[kernel_rows][vectors];
#pragma GCC unroll 8
    for (int i = 0; i < kernel_rows; ++i) {
#pragma GCC unroll 3
        for (int j = 0; j < vectors; ++j) {
            sum[i][j] = typename V::type{};
            __builtin_prefetch(c + i * ldc + j * V::lanes, 1);
        }
    }
#pragma GCC unroll 2
    for (std::int64_t k = 0; k < K; ++k, a += kernel_rows, b += kernel_cols<A>) {
        typename V::type row[vectors];
#pragma GCC unroll 3
        for (int j = 0; j < vectors; ++j) row[j] = V::load(b + j * V::lanes);
#pragma GCC unroll 8
        for (int i = 0; i < kernel_rows; ++i) {
            typename V::type x = a[i] - typename V::type{};  // to all lanes; x - 0 is x, bit for bit
#pragma GCC unroll 3
            for (int j = 0; j < vectors; ++j) sum[i][j] += x * row[j];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kernel_rows; ++i) {
#pragma GCC unroll 3
        for (int j = 0; j < vectors; ++j) {
            A* p = c + i * ldc + j * V::lanes;
            V::store(p, accumulate ? V::load(p) + sum[i][j] : sum[i][j]);
        }
    }
}

/// c [rows, cols] (+)= the product of two panels; rows <= kernel_rows, cols <= kernel_cols.
template <class A>
void multiply_corner(std::int64_t K, const A* a, const A* b, A* c, std::int64_t ldc, bool accumulate, std::int64_t rows,
                     std::int64_t cols) {
    constexpr int lanes = Vector<A>::lanes;
    bool whole = rows == kernel_rows && cols % lanes == 0;
    alignas(vector_bytes) A corner[kernel_rows * kernel_cols<A>];
    A* out = whole ? c : corner;
    std::int64_t ldo = whole ? ldc : kernel_cols<A>;
    bool add = whole && accumulate;
    if (cols > 2 * lanes)
        multiply_panels<3>(K, a, b, out, ldo, add);
    else if (cols > lanes)
        multiply_panels<2>(K, a, b, out, ldo, add);
    else
        multiply_panels<1>(K, a, b, out, ldo, add);
    if (whole) return;
    for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t s = 0; s < cols; ++s) {
            A sum = corner[r * kernel_cols<A> + s];
            c[r * ldc + s] = accumulate ? c[r * ldc + s] + sum : sum;
        }
}

}  // namespace tera::ops::cpu
