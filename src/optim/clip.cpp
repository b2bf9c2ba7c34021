// f32 gradients are squared and summed in double: a square of a finite float never overflows there, so the sum is
// finite exactly when every element is, and no second look for inf and NaN is needed.
#include "optim/clip.h"

#include <cmath>

#include "optim/pieces.h"

namespace tera {
namespace {

struct PieceStats {
    double sum_squares = 0;
    std::int64_t zeros = 0;
};

template <class T>
PieceStats measure(const T* x, std::int64_t n) {
    double sum = 0;
    std::int64_t zeros = 0;
#pragma omp simd reduction(+ : sum, zeros)
    for (std::int64_t i = 0; i < n; ++i) {
        const double v = static_cast<double>(static_cast<acc_t<T>>(x[i]));
        sum += v * v;
        zeros += v == 0 ? 1 : 0;
    }
    return {sum, zeros};
}

PieceStats measure(ConstTensor t, std::int64_t begin, std::int64_t end) {
    return dispatch_float(t.dtype, [&](auto zero) {
        using T = decltype(zero);
        return measure(t.ptr<T>() + begin, end - begin);
    });
}

}  // namespace

double GradStats::norm() const { return std::sqrt(sum_squares); }

GradStats measure_grads(const Exec& exec, const std::vector<Param*>& params) {
    const std::vector<Piece> pieces = cut_into_pieces(params);
    std::vector<PieceStats> found(pieces.size());
    exec.pool->run(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t i) {
        const Piece& piece = pieces[static_cast<std::size_t>(i)];
        found[static_cast<std::size_t>(i)] =
            measure(params[static_cast<std::size_t>(piece.param)]->grad, piece.begin, piece.end);
    });
    GradStats all;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        if (all.finite() && !std::isfinite(found[i].sum_squares)) {
            all.not_finite = params[static_cast<std::size_t>(pieces[i].param)];
        }
        all.sum_squares += found[i].sum_squares;
        all.zeros += found[i].zeros;
    }
    return all;
}

double clip_factor(double norm, double max_norm) {
    if (max_norm <= 0) return 1;
    const double factor = max_norm / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

double norm_of(const Exec& exec, const std::vector<Tensor>& tensors) {
    double sum = 0;
    for (const Tensor& t : tensors) {
        const std::int64_t n = t.numel(), count = (n + piece_elements - 1) / piece_elements;
        std::vector<double> sums(static_cast<std::size_t>(count));
        parallel_for(exec, n, piece_elements, [&](std::int64_t begin, std::int64_t end) {
            sums[static_cast<std::size_t>(begin / piece_elements)] = measure(t, begin, end).sum_squares;
        });
        for (double s : sums) sum += s;
    }
    return std::sqrt(sum);
}

}  // namespace tera
