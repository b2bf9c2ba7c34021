#include "optim/measure.h"

#include <cmath>

#include "optim/pieces.h"

#ifdef TERA_WITH_CUDA
#include "core/transfer.h"
#include "optim/measure_cuda.h"
#endif

namespace tera {
namespace {

struct PieceSums {
    double sum_squares = 0;
    std::int64_t zeros = 0;
};

/// Of the numbers at(0) to at(n - 1).
template <class At>
PieceSums measure(std::int64_t n, const At& at) {
    double sum = 0;
    std::int64_t zeros = 0;
#pragma omp simd reduction(+ : sum, zeros)
    for (std::int64_t i = 0; i < n; ++i) {
        const double v = static_cast<double>(at(i));
        sum += v * v;
        zeros += v == 0 ? 1 : 0;
    }
    return {sum, zeros};
}

}  // namespace

Measured measure_tensors(const Exec& exec, const std::vector<SplitTensor>& tensors) {
#ifdef TERA_WITH_CUDA
    if (exec.device == Device::cuda) {
        ArenaScope scope(*exec.arena);
        const CudaMeasure measuring(tensors, *exec.arena, exec);
        measuring.enqueue(exec);
        RanksMeasured found;
        copy_to_host(exec, &found, measuring.result());
        return found.here;
    }
#endif
    const std::vector<Piece> pieces = cut_into_pieces(tensors);
    std::vector<PieceSums> found(pieces.size());
    exec.pool->run(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
        const Piece& piece = pieces[static_cast<std::size_t>(i)];
        const SplitTensor& t = tensors[static_cast<std::size_t>(piece.tensor)];
        const std::int64_t n = piece.end - piece.begin;
        PieceSums& sums = found[static_cast<std::size_t>(i)];
        if (t.is_split()) {
            const Halves halves(t, piece.begin);
            sums = measure(n, [&](std::int64_t k) { return halves.get(k); });
            return;
        }
        sums = dispatch_float(t.tensor.dtype, [&](auto zero) {
            using T = decltype(zero);
            const T* const x = t.tensor.ptr<T>() + piece.begin;
            return measure(n, [x](std::int64_t k) { return static_cast<acc_t<T>>(x[k]); });
        });
    });
    Measured all;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (all.not_finite < 0 && !std::isfinite(found[i].sum_squares)) all.not_finite = pieces[i].tensor;
        all.sum_squares += found[i].sum_squares;
        all.zeros += found[i].zeros;
    }
    return all;
}

}  // namespace tera
