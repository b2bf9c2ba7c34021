#include "optim/clip.h"

#include <cmath>

namespace tera {

double GradStats::norm() const { return std::sqrt(sum_squares); }

std::vector<Tensor> grads_of(const std::vector<Param*>& params) {
    std::vector<Tensor> grads;
    for (const Param* p : params) grads.push_back(p->grad);
    return grads;
}

GradStats grad_stats(const Measured& measured, const std::vector<Param*>& params) {
    return {measured.sum_squares, measured.zeros,
            measured.not_finite < 0 ? nullptr : params[static_cast<std::size_t>(measured.not_finite)]};
}

GradStats measure_grads(const Exec& exec, const std::vector<Param*>& params) {
    return grad_stats(measure_tensors(exec, grads_of(params)), params);
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
