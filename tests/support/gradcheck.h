// Gradient checks against 4-point differences in f64: f'(x) = (8 (f(x+h) - f(x-h)) - (f(x+2h) - f(x-2h))) / 12h, whose
// error is of order h⁴. An element passes if it differs by at most `bound` times the tensor's largest gradient, plus
// what the rounding of the loss itself makes of the differences (a few ulp of the loss over h).
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "support/world.h"

namespace tera::test {

constexpr double gradient_bound = 1e-9;

/// `loss` recomputes the scalar from the current values of x; `grad` is the gradient claimed for x.
inline void check_gradient(const std::string& what, Tensor x, ConstTensor grad, const std::function<double()>& loss,
                           std::int64_t most_elements = 400, double h = 1e-3) {
    ASSERT_EQ(x.dtype, DType::f64) << what;
    std::vector<double> claimed = values(grad);
    ASSERT_EQ(static_cast<std::int64_t>(claimed.size()), x.numel()) << what;
    double largest = 0;
    for (double g : claimed) largest = std::max(largest, std::abs(g));
    double tolerance = gradient_bound * largest + 8 * 2.2e-16 * std::abs(loss()) / h;
    double* p = x.ptr<double>();
    std::int64_t step = std::max<std::int64_t>(1, x.numel() / most_elements);
    if (step > 1) step |= 1;  // odd, so that a power of two in the layout does not hide elements
    double largest_seen = 0;
    for (std::int64_t i = 0; i < x.numel(); i += step) {
        double old = p[i];
        auto at = [&](double d) {
            p[i] = old + d;
            return loss();
        };
        double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
        p[i] = old;
        largest_seen = std::max(largest_seen, std::abs(slope));
        ASSERT_NEAR(claimed[static_cast<std::size_t>(i)], slope, tolerance) << what << " element " << i;
    }
    // Some gradients are zero in exact arithmetic (a bias on all keys, without RoPE); then both sides must say so.
    if (largest > tolerance) {
        EXPECT_GT(largest_seen, 0) << what << ": the check saw no gradient at all";
    }
}

}  // namespace tera::test
