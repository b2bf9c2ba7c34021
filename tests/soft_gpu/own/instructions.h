// What the GPU computes, for comparison with the host: vectors in, vectors out.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace soft_gpu_own {

/// Of a pair of whole numbers; quotient and remainder are 0 where they are not defined, shifts are by b's lowest 8
/// bits.
template <class T>
struct OfWholes {
    T sum, difference, product, high, quotient, remainder, left, right, smaller, larger, both, either, one_of, negative;
    bool less, same;
};
template <class T>
std::vector<OfWholes<T>> of_wholes(const std::vector<T>& a, const std::vector<T>& b);

/// Of three reals.
template <class T>
struct OfReals {
    T sum, difference, product, quotient, fused, smaller, larger, root, reciprocal, size, signed_as;
    bool less, same, at_least, differs;
};
template <class T>
std::vector<OfReals<T>> of_reals(const std::vector<T>& a, const std::vector<T>& b, const std::vector<T>& c);

// Bits.
struct OfBits {
    std::uint32_t ones, reversed;
    std::uint32_t permuted;    ///< its bytes and those of its complement, by its own lower half
    std::uint32_t to_the_top;  ///< how far its first bit is from there; all bits of nothing
};
std::vector<OfBits> of_bits(const std::vector<std::uint32_t>& a);

// Conversions.
struct OfFloat {
    std::int32_t whole;
    double wide;
    float cut;
    std::uint16_t bf16, f16;
    std::uint32_t two_bf16, two_f16;  ///< of a and 1, a in the lower half
};
std::vector<OfFloat> of_float(const std::vector<float>& a);
struct OfDouble {
    float narrow;
    std::uint16_t bf16, f16;
};
std::vector<OfDouble> of_double(const std::vector<double>& a);
struct OfHalf {
    float bf16, f16;
};
std::vector<OfHalf> of_half(const std::vector<std::uint16_t>& a);
struct OfWhole {
    float from_s32, from_u32, from_s64;
    double wide_from_s32, wide_from_u32, wide_from_s64;
    std::int64_t s8, u8, s16, u16, s32, u32;  ///< what is left of it in fewer bits
};
std::vector<OfWhole> of_whole(const std::vector<std::int64_t>& a);

// Functions: of f32 as the kernels have them, by the hardware's approximations.
struct Functions {
    float power_of_two, inverse, log;
    double wide_exp, wide_log;
};
std::vector<Functions> functions(const std::vector<float>& a);

// Warps: one value of each lane.
using Lanes = std::array<std::uint32_t, 32>;
enum class Shuffle { by_xor, up, down, index };
Lanes shuffled(Shuffle how, const Lanes& values, int by, int width);
/// Each lane asks another one.
Lanes gathered(const Lanes& values, const Lanes& from);
Lanes matched(const Lanes& values);
/// On each lane 1 if any lane's value is over 100, else 0.
Lanes voted_over_100(const Lanes& values);
/// Each lane takes as many steps as it is told; then it is asked by the lane before it.
Lanes steps_of_collatz(const Lanes& begin);
/// The same, a shuffle of those that are still there in each step.
Lanes counted_together(const Lanes& trips);
/// In reverse order within an array of the thread's own, by an index.
Lanes through_local(const Lanes& values, std::uint32_t rotation);
/// Of each lane through a pointer that may be to shared, local or global memory.
Lanes through_pointers(const Lanes& values);
/// What four places have, with 1 in each before, when lanes with even values have added these, and twice, three and
/// four times as much.
std::array<float, 4> added_to_four(const Lanes& values);
/// Whether any of these threads has a flag, as each of them hears.
std::vector<int> any_of_block(const std::vector<int>& flags);

}  // namespace soft_gpu_own
