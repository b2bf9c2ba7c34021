// Operands are packed into panels of the type of the sums, so that the inner loop, a small tile of the output that
// stays in registers, sees neither types nor transposes. Panels are filled up with zeros: no edges in that loop.
#include "soft_gpu/cublaslt_product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "soft_gpu/half.h"
#include "soft_gpu/memory.h"

namespace soft_gpu::blas {
namespace {

struct Bf16 {
    std::uint16_t bits;
};
struct F16 {
    std::uint16_t bits;
};

double widen(double x) { return x; }
float widen(float x) { return x; }
float widen(Bf16 x) { return from_bf16(x.bits); }
float widen(F16 x) { return from_f16(x.bits); }

void narrow(double x, double& to) { to = x; }
void narrow(float x, float& to) { to = x; }
void narrow(float x, Bf16& to) { to.bits = bf16_of(x); }
void narrow(float x, F16& to) { to.bits = f16_of(x); }

// A tile's sums stay in registers, of which there are 32 with AVX-512 and 16 without.
#if defined(__AVX512F__)
constexpr std::size_t vector_bytes = 64, tile_cols = 8;
#elif defined(__AVX__)
constexpr std::size_t vector_bytes = 32, tile_cols = 6;
#else
constexpr std::size_t vector_bytes = 16, tile_cols = 6;
#endif
template <class Sum>
constexpr std::size_t tile_rows = 2 * vector_bytes / sizeof(Sum);
constexpr std::size_t tile_depth = 256;

std::size_t round_up(std::size_t x, std::size_t step) { return (x + step - 1) / step * step; }

/// An operand as the sums go through it: element (i, k), where k is what is summed over.
template <class In>
struct Strip {
    const In* data;
    std::size_t i_step, k_step;  ///< one of them is 1
};

template <class In>
Strip<In> strip_of(const Matrix& m, bool down_is_k) {
    const auto* data = reinterpret_cast<const In*>(m.data);
    return down_is_k ? Strip<In>{data, m.layout.ld, 1} : Strip<In>{data, 1, m.layout.ld};
}

struct Range {
    std::size_t begin, count;
};

/// to[k][width] = the operand at `i` and `k`, and zeros up to the width.
template <std::size_t width, class In, class Sum>
void pack(Sum* to, const Strip<In>& from, Range i, Range k) {
    const In* first = from.data + i.begin * from.i_step + k.begin * from.k_step;
    if (i.count < width) std::fill_n(to, width * k.count, Sum{});
    if (from.i_step == 1) {
        for (std::size_t y = 0; y < k.count; ++y)
            for (std::size_t x = 0; x < i.count; ++x) to[y * width + x] = widen(first[y * from.k_step + x]);
        return;
    }
    for (std::size_t x = 0; x < i.count; ++x)
        for (std::size_t y = 0; y < k.count; ++y) to[y * width + x] = widen(first[x * from.i_step + y]);
}

/// sum[col][row] += a[k][row] b[k][col], over `depth` of k. Vectors are named, as g++ 12 does not find them for f64.
template <class Sum>
void add_tile(Sum* sum, std::size_t sum_ld, const Sum* a, const Sum* b, std::size_t depth) {
    using Vector [[gnu::vector_size(vector_bytes)]] = Sum;
    constexpr std::size_t rows = tile_rows<Sum>, half = rows / 2;
    Vector tile[tile_cols][2] = {};
    for (std::size_t k = 0; k < depth; ++k, a += rows, b += tile_cols) {
        Vector upper, lower;
        std::memcpy(&upper, a, sizeof upper);
        std::memcpy(&lower, a + half, sizeof lower);
        for (std::size_t j = 0; j < tile_cols; ++j) {
            tile[j][0] += upper * b[j];
            tile[j][1] += lower * b[j];
        }
    }
    for (std::size_t j = 0; j < tile_cols; ++j)
        for (std::size_t i = 0; i < rows; ++i) sum[j * sum_ld + i] += tile[j][i / half][i % half];
}

/// op(A) op(B), columns `sum_ld` apart.
template <class In, class Sum>
std::vector<Sum> sums_of(const Product& p, std::size_t sum_ld) {
    constexpr std::size_t rows = tile_rows<Sum>;
    const std::size_t n_padded = round_up(p.n(), tile_cols);
    const Strip<In> a = strip_of<In>(p.a, p.a_transposed), b = strip_of<In>(p.b, !p.b_transposed);
    std::vector<Sum> sum(sum_ld * n_padded), a_panel(rows * tile_depth), b_panels(n_padded * tile_depth);
    for (std::size_t at = 0; at < p.k(); at += tile_depth) {
        const Range k{at, std::min(tile_depth, p.k() - at)};
        for (std::size_t j = 0; j < p.n(); j += tile_cols)
            pack<tile_cols>(&b_panels[j * k.count], b, {j, std::min(tile_cols, p.n() - j)}, k);
        for (std::size_t i = 0; i < p.m(); i += rows) {
            pack<rows>(a_panel.data(), a, {i, std::min(rows, p.m() - i)}, k);
            for (std::size_t j = 0; j < p.n(); j += tile_cols)
                add_tile(&sum[j * sum_ld + i], sum_ld, a_panel.data(), &b_panels[j * k.count], k.count);
        }
    }
    return sum;
}

template <class Sum>
Sum gelu(Sum x) {
    const Sum inner = static_cast<Sum>(0.7978845608028654) * (x + static_cast<Sum>(0.044715) * x * x * x);
    return x / 2 * (1 + std::tanh(inner));
}

template <class Out>
Out* column(const Matrix& m, std::size_t j) {
    return reinterpret_cast<Out*>(m.data) + j * m.layout.ld;
}

/// From the sums to the output.
template <class Out, class Sum>
void finish(const Product& p, std::vector<Sum> sum, std::size_t sum_ld) {
    const auto alpha = static_cast<Sum>(p.alpha), beta = static_cast<Sum>(p.beta);
    const auto* bias = reinterpret_cast<const Out*>(p.bias);
    for (std::size_t j = 0; j < p.n(); ++j) {
        Sum* x = &sum[j * sum_ld];
        for (std::size_t i = 0; i < p.m(); ++i) x[i] *= alpha;
        if (beta != 0) {
            const Out* c = column<Out>(p.c, j);
            for (std::size_t i = 0; i < p.m(); ++i) x[i] += beta * widen(c[i]);
        }
        if (bias)
            for (std::size_t i = 0; i < p.m(); ++i) x[i] += widen(bias[i]);
        if (p.gelu_input.data) {
            Out* input = column<Out>(p.gelu_input, j);
            for (std::size_t i = 0; i < p.m(); ++i) narrow(x[i], input[i]), x[i] = gelu(x[i]);
        }
        Out* d = column<Out>(p.d, j);
        for (std::size_t i = 0; i < p.m(); ++i) narrow(x[i], d[i]);
    }
}

template <class In, class Sum, class Out>
void multiply_typed(const Product& p) {
    const std::size_t sum_ld = round_up(p.m(), tile_rows<Sum>);
    finish<Out>(p, sums_of<In, Sum>(p, sum_ld), sum_ld);
}

struct Kind {
    cudaDataType_t in, out;
    void (*multiply)(const Product&);
};
constexpr Kind kinds[] = {
    {CUDA_R_64F, CUDA_R_64F, multiply_typed<double, double, double>},
    {CUDA_R_32F, CUDA_R_32F, multiply_typed<float, float, float>},
    {CUDA_R_16BF, CUDA_R_16BF, multiply_typed<Bf16, float, Bf16>},
    {CUDA_R_16BF, CUDA_R_32F, multiply_typed<Bf16, float, float>},
    {CUDA_R_16F, CUDA_R_16F, multiply_typed<F16, float, F16>},
    {CUDA_R_16F, CUDA_R_32F, multiply_typed<F16, float, float>},
};

const Kind* find_kind(cudaDataType_t in, cudaDataType_t out) {
    const auto* at = std::find_if(std::begin(kinds), std::end(kinds),
                                  [&](const Kind& kind) { return kind.in == in && kind.out == out; });
    return at == std::end(kinds) ? nullptr : at;
}

/// Calls f(address, bytes) for every column; once for all where there is nothing between them.
template <class F>
void for_columns(const Matrix& m, const F& f) {
    const std::size_t size = size_of(m.layout.type);
    if (m.layout.ld == m.layout.rows) return f(m.data, m.layout.rows * m.layout.cols * size);
    for (std::size_t j = 0; j < m.layout.cols; ++j) f(m.data + j * m.layout.ld * size, m.layout.rows * size);
}

void read(const Matrix& m, const char* what) {
    for_columns(m, [&](const std::byte* data, std::size_t bytes) { Memory::get().read(data, bytes, what); });
}

void wrote(const Matrix& m, const char* what) {
    for_columns(m, [&](std::byte* data, std::size_t bytes) { Memory::get().wrote(data, bytes, what); });
}

/// Whether the bytes [begin, end) touch a column of the matrix.
bool touches(const Matrix& m, const std::byte* begin, const std::byte* end) {
    const std::size_t size = size_of(m.layout.type), column_bytes = m.layout.rows * size, step = m.layout.ld * size;
    if (end <= m.data) return false;
    // The last column that begins before the end; none before it ends later.
    const std::size_t j = std::min(static_cast<std::size_t>(end - m.data - 1) / step, m.layout.cols - 1);
    return m.data + j * step + column_bytes > begin;
}

void must_be_apart(const Matrix& out, const char* out_name, const Matrix& other, const char* other_name) {
    for_columns(out, [&](const std::byte* data, std::size_t bytes) {
        if (touches(other, data, data + bytes))
            throw Fault(std::string(out_name) + " lies where " + other_name + " is");
    });
}

/// An output and all that is read; C may be D itself.
void must_be_apart(const Product& p, const Matrix& out, const char* out_name) {
    must_be_apart(out, out_name, p.a, "A");
    must_be_apart(out, out_name, p.b, "B");
    if (p.beta != 0 && p.c.data != out.data) must_be_apart(out, out_name, p.c, "C");
    if (p.bias) {
        std::byte* bias = const_cast<std::byte*>(p.bias);
        must_be_apart(out, out_name, {bias, {p.d.layout.type, p.m(), 1, p.m()}}, "the bias");
    }
}

}  // namespace

std::size_t size_of(cudaDataType_t type) {
    switch (type) {
        case CUDA_R_64F:
            return 8;
        case CUDA_R_32F:
            return 4;
        case CUDA_R_16BF:
        case CUDA_R_16F:
            return 2;
        default:
            return 0;
    }
}

bool has_product(cudaDataType_t in, cudaDataType_t out) { return find_kind(in, out) != nullptr; }

void multiply(const Product& p) {
    const Kind* kind = find_kind(p.a.layout.type, p.d.layout.type);
    if (!kind || p.a.layout.type != p.b.layout.type) throw Fault("there is no product of these types");
    read(p.a, "A");
    read(p.b, "B");
    if (p.beta != 0) read(p.c, "C");
    if (p.bias) Memory::get().read(p.bias, p.m() * size_of(p.d.layout.type), "bias");
    must_be_apart(p, p.d, "D");
    if (p.gelu_input.data) {
        must_be_apart(p, p.gelu_input, "the input of GELU");
        must_be_apart(p.gelu_input, "the input of GELU", p.d, "D");
        wrote(p.gelu_input, "input of GELU");
    }
    wrote(p.d, "D");
    kind->multiply(p);
}

}  // namespace soft_gpu::blas
