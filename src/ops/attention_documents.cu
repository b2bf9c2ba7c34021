#include "ops/attention_documents.h"

#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {
namespace {

__global__ void attention_document_places(std::int32_t* lengths, std::int64_t* starts, const std::int32_t* rows,
                                          std::int64_t documents, std::int64_t n, std::int64_t tokens,
                                          RowWidths widths) {
    for (std::int64_t i = threadIdx.x; i <= n; i += blockDim.x) {
        const bool there = i < documents;
        const std::int64_t first = there ? rows[2 * i] : tokens;
        if (i < n) lengths[i] = there ? rows[2 * i + 1] : 0;
        for (int w = 0; w < widths.count; ++w) starts[w * (n + 1) + i] = first * widths.width[w];
    }
}

/// One of the two is written; a block has 32 x 32 of (b, h) and s.
template <bool to_rows>
__global__ void attention_turn_lse(float* out, const float* in, std::int64_t S, std::int64_t pairs) {
    __shared__ float tile[32][33];
    const std::int64_t s0 = std::int64_t{blockIdx.x} * 32, p0 = std::int64_t{blockIdx.y} * 32;
    const std::int64_t columns = to_rows ? S : pairs, rows = to_rows ? pairs : S;
    const std::int64_t c0 = to_rows ? s0 : p0, r0 = to_rows ? p0 : s0;
    for (int k = threadIdx.y; k < 32; k += blockDim.y)
        if (r0 + k < rows && c0 + threadIdx.x < columns)
            tile[k][threadIdx.x] = in[(r0 + k) * columns + c0 + threadIdx.x];
    __syncthreads();
    for (int k = threadIdx.y; k < 32; k += blockDim.y)
        if (c0 + k < columns && r0 + threadIdx.x < rows) out[(c0 + k) * rows + r0 + threadIdx.x] = tile[threadIdx.x][k];
}

template <bool to_rows>
void turn(const Exec& exec, Tensor out, ConstTensor in, const Shape& lse) {
    const std::int64_t S = lse[2], pairs = lse[0] * lse[1];
    const auto tiles = [](std::int64_t n) { return static_cast<unsigned>((n + 31) / 32); };
    attention_turn_lse<to_rows><<<dim3(tiles(S), tiles(pairs)), dim3(32, 8), 0, exec.gpu->stream>>>(
        out.ptr<float>(), in.ptr<float>(), S, pairs);
    TERA_LAUNCHED();
}

}  // namespace

void document_places(const Exec& exec, const AttentionSpec& spec, const RowWidths& widths, Tensor lengths,
                     Tensor starts) {
    attention_document_places<<<1, 256, 0, exec.gpu->stream>>>(lengths.ptr<std::int32_t>(), starts.ptr<std::int64_t>(),
                                                               spec.documents.rows, spec.documents.count,
                                                               lengths.numel(), spec.Sq * spec.B, widths);
    TERA_LAUNCHED();
}

void lse_from_rows(const Exec& exec, Tensor lse, ConstTensor rows) { turn<false>(exec, lse, rows, lse.shape); }
void lse_to_rows(const Exec& exec, Tensor rows, ConstTensor lse) { turn<true>(exec, rows, lse, lse.shape); }

}  // namespace tera::ops::cuda
