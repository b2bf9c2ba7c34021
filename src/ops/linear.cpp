#include "ops/linear.h"

#include "ops/column_sum.h"
#include "ops/convert.h"
#include "ops/dispatch.h"
#include "ops/gemm.h"

namespace tera::ops {
namespace {

void check_2d(const char* what, const ConstTensor& t, std::int64_t cols) {
    TERA_CHECK(t.shape.ndim == 2 && t.shape[1] == cols, what, " is ", t.shape, ", wanted [*,", cols, "]");
}

}  // namespace

TERA_BACKENDS(void linear(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor bias))
TERA_BACKENDS(void linear_dgrad(const Exec& exec, Tensor dx, ConstTensor dy, ConstTensor w))
TERA_BACKENDS(void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x))

namespace cpu {

void linear(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w, ConstTensor bias) {
    if (bias) {  // every row starts as the bias, and the product is added to it
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

void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x) {
    gemm(exec, dw.shape[0], dw.shape[1], x.rows(), {dy.data, dy.dtype, dy.cols(), true},
         {x.data, x.dtype, x.cols(), false}, {dw.data, dw.dtype, dw.cols(), true});
}

}  // namespace cpu

void linear_into(const Exec& exec, Tensor y, ConstTensor x, ConstTensor w) {
    check_2d("weight", w, x.cols());
    check_2d("output", y, w.shape[0]);
    TERA_DISPATCH(exec, linear(exec, y, x, w, ConstTensor{}));
}

Tensor linear(const Exec& exec, ConstTensor x, ConstTensor w, ConstTensor bias) {
    check_2d("weight", w, x.cols());
    TERA_CHECK(!bias || bias.numel() == w.shape[0], "bias ", bias.shape, " for weight ", w.shape);
    Tensor y = exec.tensor(x.dtype, {x.rows(), w.shape[0]});
    TERA_DISPATCH(exec, linear(exec, y, x, w, bias));
    return y;
}

void linear_dgrad_into(const Exec& exec, Tensor dx, ConstTensor dy, ConstTensor w) {
    check_2d("gradient of the output", dy, w.shape[0]);
    check_2d("gradient of the input", dx, w.shape[1]);
    TERA_DISPATCH(exec, linear_dgrad(exec, dx, dy, w));
}

Tensor linear_dgrad(const Exec& exec, ConstTensor dy, ConstTensor w) {
    Tensor dx = exec.tensor(w.dtype, {dy.rows(), w.shape[1]});
    linear_dgrad_into(exec, dx, dy, w);
    return dx;
}

void linear_wgrad(const Exec& exec, Tensor dw, ConstTensor dy, ConstTensor x) {
    check_2d("weight gradient", dw, x.cols());
    check_2d("gradient of the output", dy, dw.shape[0]);
    TERA_CHECK(dy.rows() == x.rows(), dy.shape, " and ", x.shape);
    TERA_DISPATCH(exec, linear_wgrad(exec, dw, dy, x));
}

void bias_grad(const Exec& exec, Tensor db, ConstTensor dy) {
    TERA_CHECK(db.numel() == dy.cols(), db.shape, " for ", dy.shape);
    TERA_DISPATCH_WITH_SCRATCH(exec, column_sum(exec, db, dy));
}

}  // namespace tera::ops
