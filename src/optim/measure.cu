#include "core/transfer.h"
#include "ops/cuda_types.cuh"
#include "optim/measure_cuda.h"
#include "optim/pieces.h"

namespace tera {
namespace {

using namespace ops::cuda;

// Short, so that the last wave of blocks is a small part of the whole.
constexpr std::int64_t device_piece_elements = 16384;
constexpr int threads = 256;

struct Source {
    const void* data;
    const std::uint16_t* rest;  ///< of numbers in halves; else null
    DType dtype;
};

struct PieceSums {
    double sum_squares;
    std::int64_t zeros;
};

struct Least {
    template <class A>
    __device__ A operator()(A a, A b) const {
        return a < b ? a : b;
    }
};

template <class T>
__device__ void look_at(T element, double& sum, std::int64_t& zeros) {
    double v = static_cast<double>(widen(element));
    sum += v * v;
    zeros += v == 0;
}

template <class T>
__device__ void look_at_run(const T* x, int n, double& sum, std::int64_t& zeros) {
    constexpr int width = Pack<T>::n;
    // A rank's part of a tensor may begin anywhere.
    int whole = reinterpret_cast<std::uintptr_t>(x) % sizeof(Pack<T>) == 0 ? n / width * width : 0;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x) * width; i < whole; i += threads * width) {
        Pack<T> pack = load_pack(x + i);
#pragma unroll
        for (int k = 0; k < width; ++k) look_at(pack.v[k], sum, zeros);
    }
    for (int i = whole + static_cast<int>(threadIdx.x); i < n; i += threads) look_at(x[i], sum, zeros);
}

__device__ void look_at_halves(const __nv_bfloat16* value, const std::uint16_t* rest, int n, double& sum,
                               std::int64_t& zeros) {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += threads)
        look_at(joined({__bfloat16_as_ushort(value[i]), static_cast<std::int16_t>(rest[i])}), sum, zeros);
}

__global__ void __launch_bounds__(threads)
    measure_pieces(PieceSums* out, const DevicePiece* pieces, const Source* sources) {
    DevicePiece piece = pieces[blockIdx.x];
    Source source = sources[piece.tensor];
    double sum = 0;
    std::int64_t zeros = 0;
    switch (source.dtype) {
        case DType::f64:
            look_at_run(static_cast<const double*>(source.data) + piece.begin, piece.count, sum, zeros);
            break;
        case DType::f32:
            look_at_run(static_cast<const float*>(source.data) + piece.begin, piece.count, sum, zeros);
            break;
        case DType::bf16: {
            const auto* values = static_cast<const __nv_bfloat16*>(source.data) + piece.begin;
            if (source.rest != nullptr)
                look_at_halves(values, source.rest + piece.begin, piece.count, sum, zeros);
            else
                look_at_run(values, piece.count, sum, zeros);
            break;
        }
        default:
            look_at_run(static_cast<const __half*>(source.data) + piece.begin, piece.count, sum, zeros);
    }
    sum = block_reduce(sum, Sum{});
    zeros = block_reduce(zeros, Sum{});
    if (threadIdx.x == 0) out[blockIdx.x] = {sum, zeros};
}

__global__ void __launch_bounds__(1024)
    add_pieces(RanksMeasured* out, const PieceSums* sums, const DevicePiece* pieces, std::int64_t count) {
    double sum = 0;
    std::int64_t zeros = 0, first = count;
    for (std::int64_t i = threadIdx.x; i < count; i += blockDim.x) {
        PieceSums piece = sums[i];
        sum += piece.sum_squares;
        zeros += piece.zeros;
        if (!isfinite(piece.sum_squares) && first == count) first = i;
    }
    sum = block_reduce(sum, Sum{});
    zeros = block_reduce(zeros, Sum{});
    first = block_reduce(first, Least{});
    if (threadIdx.x == 0) {
        out->here = {sum, zeros, first < count ? pieces[first].tensor : -1};
        out->all = {sum, static_cast<double>(zeros), first < count ? 1.0 : 0.0};
    }
}

template <class T>
Tensor room_for(Arena& arena, std::int64_t n) {
    return arena.tensor(DType::u8, {n * static_cast<std::int64_t>(sizeof(T))});
}

}  // namespace

DevicePieces::DevicePieces(const std::vector<SplitTensor>& tensors, Arena& arena, const Exec& exec,
                           const SliceGroups& groups) {
    PieceGroups cut = cut_into_pieces(tensors, groups, device_piece_elements);
    std::vector<DevicePiece> pieces;
    for (const Piece& p : cut.pieces) {
        pieces.push_back({p.begin, static_cast<std::int32_t>(p.end - p.begin), static_cast<std::int32_t>(p.tensor)});
    }
    begins_ = std::move(cut.begins);
    pieces_ = room_for<DevicePiece>(arena, begins_.back());
    if (arena.kind() != Arena::Kind::counting) copy_from_host(exec, pieces_, pieces.data());
}

CudaMeasure::CudaMeasure(const std::vector<SplitTensor>& tensors, Arena& arena, const Exec& exec)
    : pieces_(tensors, arena, exec),
      tensors_(room_for<Source>(arena, static_cast<std::int64_t>(tensors.size()))),
      sums_(room_for<PieceSums>(arena, pieces_.count())),
      result_(room_for<RanksMeasured>(arena, 1)) {
    if (arena.kind() == Arena::Kind::counting) return;
    std::vector<Source> sources;
    for (const SplitTensor& t : tensors)
        sources.push_back({t.tensor.data, t.is_split() ? t.rest.ptr<std::uint16_t>() : nullptr, t.tensor.dtype});
    copy_from_host(exec, tensors_, sources.data());
}

void CudaMeasure::enqueue(const Exec& exec) const {
    auto* sums = reinterpret_cast<PieceSums*>(sums_.data);
    auto* sources = reinterpret_cast<const Source*>(tensors_.data);
    const std::int64_t n = pieces_.count();
    if (n > 0)
        measure_pieces<<<static_cast<unsigned>(n), threads, 0, exec.gpu->stream>>>(sums, pieces_.data(), sources);
    add_pieces<<<1, 1024, 0, exec.gpu->stream>>>(reinterpret_cast<RanksMeasured*>(result_.data), sums, pieces_.data(),
                                                 n);
    TERA_LAUNCHED();
}

}  // namespace tera
