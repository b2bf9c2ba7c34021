#include "ops/linear.h"

#include "ops/activated_product.h"
#include "ops/column_sum.h"
#include "ops/convert.h"
#include "ops/gemm.h"
#include "ops/linear_backends.h"

namespace tera::ops {
namespace {

void check_2d(const char* what, const ConstTensor& t, std::int64_t cols) {
    TERA_CHECK(t.shape.ndim == 2 && t.shape[1] == cols, what, " is ", t.shape, ", wanted [*,", cols, "]");
}

}  // namespace

namespace cpu {

void linear(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor bias) {
    if (bias && !exec.counts()) {  // every row starts as the bias, and the product is added to it
        dispatch_float(y.dtype, [&](auto zero) {
            using T = decltype(zero);
            std::int64_t n = y.cols();
            parallel_for(exec, y.rows(), grain_rows(n), [&](std::int64_t r0, std::int64_t r1) {
                for (std::int64_t r = r0; r < r1; ++r) std::copy_n(bias.ptr<T>(), n, y.ptr<T>() + r * n);
            });
        });
    }
    gemm(exec, x.rows(), w.shape[0], w.shape[1], {x.data, x.dtype, x.cols(), false}, {w.data, w.dtype, w.cols(), true},
         {y.data, y.dtype, y.cols(), static_cast<bool>(bias)});
}

void linear_dgrad(const Exec& exec, Tensor dx, ConstTensor dy, ConstTensor w) {
    gemm(exec, dy.rows(), w.shape[1], w.shape[0], {dy.data, dy.dtype, dy.cols(), false},
         {w.data, w.dtype, w.cols(), false}, {dx.data, dx.dtype, dx.cols(), false});
}

void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x, Tensor db, Before before) {
    if (db) column_sum(exec, db, dy);
    gemm(exec, dw.shape[0], dw.shape[1], x.rows(), {dy.data, dy.dtype, dy.cols(), true},
         {x.data, x.dtype, x.cols(), false}, {dw.data, dw.dtype, dw.cols(), before == Before::sum});
}

void linear_residual(const Exec& exec, Tensor out, ConstTensor x, ConstTensor w, ConstTensor bias,
                     const Residual& residual) {
    linear(exec, out, x, w, {});
    if (!exec.counts()) dropout_add(exec, out, residual.x, out, bias, residual.dropout);
}

void linear_activation(const Exec& exec, ActivationKind kind, Tensor a, Tensor h, ConstTensor x, ConstTensor w,
                       ConstTensor bias) {
    linear(exec, h, x, w, bias);
    if (!exec.counts()) activation(exec, kind, a, h);
}

}  // namespace cpu

void linear_into(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w) {
    check_2d("weight", w, x.cols());
    check_2d("output", y, w.shape[0]);
    TERA_DISPATCH_WITH_SCRATCH(exec, linear(exec, y, x, w, ConstTensor{}));
}

Tensor linear(const Exec& exec, ConstTensor x, ConstTensor w, ConstTensor bias) {
    check_2d("weight", w, x.cols());
    TERA_CHECK(!bias || bias.numel() == w.shape[0], "bias ", bias.shape, " for weight ", w.shape);
    Tensor y = exec.tensor(x.dtype, {x.rows(), w.shape[0]});
    TERA_DISPATCH_WITH_SCRATCH(exec, linear(exec, y, x, w, bias));
    return y;
}

Tensor linear_residual(const Exec& exec, ConstTensor x, ConstTensor w, ConstTensor bias, const Residual& residual) {
    check_2d("weight", w, x.cols());
    check_2d("residual", residual.x, w.shape[0]);
    TERA_CHECK(residual.x.rows() == x.rows() && residual.x.dtype == x.dtype, "residual ", residual.x.shape);
    TERA_CHECK(!bias || bias.numel() == w.shape[0], "bias ", bias.shape, " for weight ", w.shape);
    TERA_CHECK(residual.dropout.p == 0 || (residual.dropout.sample && residual.dropout.B > 0),
               "dropout needs sample numbers");
    Tensor out = exec.tensor(x.dtype, {x.rows(), w.shape[0]});
    TERA_DISPATCH_WITH_SCRATCH(exec, linear_residual(exec, out, x, w, bias, residual));
    return out;
}

Activated linear_activation(const Exec& keep, const Exec& temp, ActivationKind kind, ConstTensor x, ConstTensor w,
                            ConstTensor bias) {
    check_2d("weight", w, x.cols());
    TERA_CHECK(!bias || bias.numel() == w.shape[0], "bias ", bias.shape, " for weight ", w.shape);
    std::int64_t T = x.rows(), F = w.shape[0];
    TERA_CHECK(!is_gated(kind) || F % 2 == 0, w.shape);
    Activated out{keep.tensor(x.dtype, {T, F}), temp.tensor(x.dtype, {T, is_gated(kind) ? F / 2 : F})};
    const cuda::ActivatedSizes sizes{T, x.cols(), out.a.cols()};
    if (!bias && cuda::has_gated_products(keep, kind, x.dtype, sizes)) {
        cuda::gated_product(keep, out.a, out.h, x, w);
        return out;
    }
    if (cuda::has_plain_products(keep, kind, x.dtype, sizes)) {
        cuda::plain_product(keep, kind, out.a, out.h, x, w, bias);
        return out;
    }
    TERA_DISPATCH_WITH_SCRATCH(keep, linear_activation(keep, kind, out.a, out.h, x, w, bias));
    return out;
}

std::optional<ActivatedBackward> linear_dgrad_activation(const Exec& exec, ActivationKind kind, ConstTensor dy,
                                                         ConstTensor w, ConstTensor h, Tensor db, bool rebuild) {
    check_2d("gradient of the output", dy, w.shape[0]);
    const std::int64_t width = w.shape[1];
    check_2d("activation's input", h, is_gated(kind) ? 2 * width : width);
    TERA_CHECK(h.rows() == dy.rows(), h.shape, " and ", dy.shape);
    TERA_CHECK(!db || db.numel() == h.cols(), db.shape, " for ", h.shape);
    const cuda::ActivatedSizes sizes{dy.rows(), dy.cols(), width};
    const bool gated = !db && cuda::has_gated_products(exec, kind, h.dtype, sizes);
    if (!gated && !cuda::has_plain_products(exec, kind, h.dtype, sizes)) return {};
    const ActivatedBackward out{exec.like(h), rebuild ? exec.tensor(h.dtype, {h.rows(), width}) : Tensor{}};
    const cuda::ActivatedGrads to{out.dh, out.a, db};
    if (gated)
        cuda::gated_product_backward(exec, to, dy, w, h);
    else
        cuda::plain_product_backward(exec, kind, to, dy, w, h);
    return out;
}

void linear_dgrad_into(const Exec& exec, Tensor dx, ConstTensor dy, ConstTensor w) {
    check_2d("gradient of the output", dy, w.shape[0]);
    check_2d("gradient of the input", dx, w.shape[1]);
    TERA_DISPATCH_WITH_SCRATCH(exec, linear_dgrad(exec, dx, dy, w));
}

Tensor linear_dgrad(const Exec& exec, ConstTensor dy, ConstTensor w) {
    Tensor dx = exec.tensor(w.dtype, {dy.rows(), w.shape[1]});
    linear_dgrad_into(exec, dx, dy, w);
    return dx;
}

void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x, Tensor db, Before before) {
    check_2d("weight gradient", dw, x.cols());
    check_2d("gradient of the output", dy, dw.shape[0]);
    TERA_CHECK(dy.rows() == x.rows(), dy.shape, " and ", x.shape);
    TERA_CHECK(!db || db.numel() == dy.cols(), db.shape, " for ", dy.shape);
    TERA_DISPATCH_WITH_SCRATCH(exec, linear_wgrad(exec, dw, dy, x, db, before));
}

void bias_grad(const Exec& exec, Tensor db, ConstTensor dy) {
    TERA_CHECK(db.numel() == dy.cols(), db.shape, " for ", dy.shape);
    TERA_DISPATCH_WITH_SCRATCH(exec, column_sum(exec, db, dy));
}

}  // namespace tera::ops
