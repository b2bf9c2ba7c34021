#include "ops/attention_documents.h"

#include "ops/cuda_types.cuh"

namespace tera::ops::cuda {
namespace {

__global__ void attention_document_places(std::int32_t* lengths, std::int64_t* starts, const std::int32_t* rows,
                                          std::int64_t documents, std::int64_t n, std::int64_t S, std::int64_t B,
                                          RowKinds kinds) {
    for (std::int64_t i = threadIdx.x; i <= n; i += blockDim.x) {
        const bool there = i < documents;
        const std::int64_t row = there ? rows[2 * i] : S * B, in_sample = there ? row % B * S + row / B : S * B;
        if (i < n) lengths[i] = there ? rows[2 * i + 1] : 0;
        for (int k = 0; k < kinds.count; ++k)
            starts[k * (n + 1) + i] = (kinds.kind[k].by_sample ? in_sample : row) * kinds.kind[k].width;
    }
}

__global__ void attention_put_rows(uint4* out, const uint4* x, std::int64_t S, std::int64_t B, std::int64_t width,
                                   std::int64_t columns) {
    const std::int64_t row = blockIdx.x, s = row / B, b = row % B;
    for (std::int64_t c = threadIdx.x; c < columns; c += blockDim.x)
        out[row * width + c] = x[(b * S + s) * columns + c];
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

void document_places(const Exec& exec, const AttentionSpec& spec, const RowKinds& kinds, Tensor lengths,
                     Tensor starts) {
    attention_document_places<<<1, 256, 0, exec.gpu->stream>>>(lengths.ptr<std::int32_t>(), starts.ptr<std::int64_t>(),
                                                               spec.documents.rows, spec.documents.count,
                                                               lengths.numel(), spec.Sq, spec.B, kinds);
    TERA_LAUNCHED();
}

void put_rows_of_samples(const Exec& exec, HeadRows<Tensor> out, ConstTensor x, std::int64_t S) {
    constexpr std::int64_t eight = 8;
    TERA_CHECK(size_of(x.dtype) == 2 && (x.cols() | out.offset | out.data.cols()) % eight == 0,
               "not in eights: ", x.cols(), " columns at ", out.offset, " of ", out.data.cols());
    attention_put_rows<<<static_cast<unsigned>(x.rows()), 64, 0, exec.gpu->stream>>>(
        reinterpret_cast<uint4*>(out.data.data) + out.offset / eight, reinterpret_cast<const uint4*>(x.data), S,
        x.rows() / S, out.data.cols() / eight, x.cols() / eight);
    TERA_LAUNCHED();
}

void lse_from_rows(const Exec& exec, Tensor lse, ConstTensor rows) { turn<false>(exec, lse, rows, lse.shape); }
void lse_to_rows(const Exec& exec, Tensor rows, ConstTensor lse) { turn<true>(exec, rows, lse, lse.shape); }

}  // namespace tera::ops::cuda
