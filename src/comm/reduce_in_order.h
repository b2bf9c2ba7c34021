// Sums and maxima over ranks on the CPU, taken in the order of the ranks.
#pragma once

#include <vector>

#include "comm/comm.h"

namespace tera {

/// Calls f with a zero of the element type of `dtype`.
template <class F>
void with_element_type(DType dtype, const F& f) {
    if (dtype == DType::i64) return f(std::int64_t{});
    if (dtype == DType::i32) return f(std::int32_t{});
    dispatch_float(dtype, f);
}

namespace detail {
template <class T>
struct SumType {
    using type = acc_t<T>;
};
template <>
struct SumType<std::int64_t> {
    using type = std::int64_t;
};
template <>
struct SumType<std::int32_t> {
    using type = std::int32_t;
};
}  // namespace detail

/// Element i over all inputs, in their order; a maximum keeps what is not a number.
template <class T>
T reduce_in_order(const std::vector<const T*>& inputs, std::int64_t i, Reduce op) {
    using A = typename detail::SumType<T>::type;
    A all = static_cast<A>(inputs[0][i]);
    for (std::size_t r = 1; r < inputs.size(); ++r) {
        const A x = static_cast<A>(inputs[r][i]);
        all = op == Reduce::max ? (x > all || x != x ? x : all) : static_cast<A>(all + x);
    }
    return static_cast<T>(all);
}

}  // namespace tera
