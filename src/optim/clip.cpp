#include "optim/clip.h"

#include <cmath>

namespace tera {

double GradStats::norm() const { return std::sqrt(sum_squares); }

std::vector<SplitTensor> grads_of(const std::vector<ParamSlice>& slices) {
    std::vector<SplitTensor> grads;
    for (const ParamSlice& s : slices) grads.emplace_back(s.grad());
    return grads;
}

GradStats grad_stats(const RanksMeasured& measured, const std::vector<ParamSlice>& slices) {
    const std::int64_t bad = measured.here.not_finite;
    GradStats stats;
    stats.sum_squares = measured.all.squares;
    stats.zeros = static_cast<std::int64_t>(measured.all.zeros);
    if (bad >= 0) stats.not_finite = slices[static_cast<std::size_t>(bad)].param;
    stats.finite_elsewhere = measured.all.not_finite == (bad >= 0 ? 1 : 0);
    return stats;
}

GradStats measure_grads(const Exec& exec, const std::vector<ParamSlice>& slices) {
    return grad_stats(RanksMeasured(measure_tensors(exec, grads_of(slices))), slices);
}

double clip_factor(double norm, double max_norm) {
    if (max_norm <= 0) return 1;
    const double factor = max_norm / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

double norm_of(const Exec& exec, const std::vector<SplitTensor>& tensors) {
    return std::sqrt(measure_tensors(exec, tensors).sum_squares);
}

}  // namespace tera
