#include "ops/norm.h"

#include "ops/norm_backends.h"

namespace tera::ops {

Tensor norm(const Exec& exec, const NormSpec& spec, ConstTensor x, ConstTensor w, ConstTensor b, NormStats& stats) {
    TERA_CHECK(w.numel() == x.cols() && w.dtype == x.dtype, "norm weight ", w.shape, " for ", x.shape);
    DType acc = acc_dtype(x.dtype);
    Tensor y = exec.like(x);
    stats.rstd = exec.tensor(acc, {x.rows()});
    stats.mean = spec.rms ? Tensor{} : exec.tensor(acc, {x.rows()});
    TERA_DISPATCH(exec, norm(exec, spec, y, x, w, b, stats));
    return y;
}

void norm_backward(const Exec& exec, const NormSpec& spec, const NormGrads& grads, ConstTensor dy, ConstTensor x,
                   ConstTensor w, const NormStats& stats) {
    TERA_CHECK(grads.dx.shape == x.shape && dy.shape == x.shape, grads.dx.shape, dy.shape, x.shape);
    TERA_DISPATCH_WITH_SCRATCH(exec, norm_backward(exec, spec, grads, dy, x, w, stats));
}

Tensor head_norm(const Exec& exec, const NormSpec& spec, HeadCounts counts, ConstTensor qkv,
                 const HeadNormWeights& weights, NormStats& stats) {
    auto [H, G, K] = counts;
    TERA_CHECK(qkv.cols() == (H + 2 * G) * K && weights.wq.numel() == K && weights.wk.numel() == K, "qkv ", qkv.shape);
    DType acc = acc_dtype(qkv.dtype);
    Tensor out = exec.like(qkv);
    stats.rstd = exec.tensor(acc, {qkv.rows(), H + G});
    stats.mean = spec.rms ? Tensor{} : exec.tensor(acc, {qkv.rows(), H + G});
    TERA_DISPATCH(exec, head_norm(exec, spec, counts, out, qkv, weights, stats));
    return out;
}

void head_norm_backward(const Exec& exec, const NormSpec& spec, HeadCounts counts, const HeadNormGrads& grads,
                        Tensor dqkv, ConstTensor qkv, const HeadNormWeights& weights, const NormStats& stats) {
    TERA_CHECK(dqkv.shape == qkv.shape, dqkv.shape, qkv.shape);
    TERA_DISPATCH_WITH_SCRATCH(exec, head_norm_backward(exec, spec, counts, grads, dqkv, qkv, weights, stats));
}

}  // namespace tera::ops
