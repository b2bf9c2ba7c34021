#include "optim/clip.h"

#include <cmath>

namespace tera {

double GradStats::norm() const { return std::sqrt(sum_squares); }

std::vector<Tensor> grads_of(const std::vector<ParamSlice>& slices) {
    std::vector<Tensor> grads;
    for (const ParamSlice& s : slices) grads.push_back(s.grad());
    return grads;
}

GradStats grad_stats(const Measured& measured, const std::vector<ParamSlice>& slices) {
    GradStats stats;
    stats.sum_squares = measured.sum_squares;
    stats.zeros = measured.zeros;
    if (measured.not_finite >= 0) stats.not_finite = slices[static_cast<std::size_t>(measured.not_finite)].param;
    return stats;
}

GradStats measure_grads(const Exec& exec, const std::vector<ParamSlice>& slices) {
    return grad_stats(measure_tensors(exec, grads_of(slices)), slices);
}

void agree(const Exec& exec, Comm& ranks, GradStats& grads) {
    double sums[] = {grads.sum_squares, static_cast<double>(grads.zeros), grads.not_finite != nullptr ? 1.0 : 0.0};
    ranks.all_reduce(exec, tensor_over(sums, {3}), Reduce::sum);
    grads.sum_squares = sums[0];
    grads.zeros = static_cast<std::int64_t>(sums[1]);
    grads.finite_elsewhere = sums[2] == 0 || (sums[2] == 1 && grads.not_finite != nullptr);
}

double clip_factor(double norm, double max_norm) {
    if (max_norm <= 0) return 1;
    const double factor = max_norm / (norm + 1e-6);
    return factor < 1 ? factor : 1;
}

double norm_of(const Exec& exec, const std::vector<Tensor>& tensors) {
    return std::sqrt(measure_tensors(exec, tensors).sum_squares);
}

}  // namespace tera
