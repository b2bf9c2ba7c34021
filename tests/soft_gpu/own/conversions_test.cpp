// Conversions against their definitions: the nearest of all numbers of a type, a tie to the even one.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "soft_gpu/own/instructions.h"

namespace soft_gpu_own {
namespace {

/// All numbers of sixteen bits that are not negative, in order: their bits are their places.
class Halves {
  public:
    Halves(int exponent_bits, int fraction_bits) : infinity_(((1 << exponent_bits) - 1) << fraction_bits) {
        const int bias = (1 << (exponent_bits - 1)) - 1, one = 1 << fraction_bits;
        for (int bits = 0; bits <= infinity_; ++bits) {
            const int exponent = bits >> fraction_bits, fraction = bits & (one - 1);
            values_.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias - fraction_bits)
                                            : std::ldexp(one + fraction, exponent - bias - fraction_bits));
        }
    }
    double value(std::uint16_t bits) const {
        const int size = bits & 0x7fff;
        const double x = size > infinity_    ? std::numeric_limits<double>::quiet_NaN()
                         : size == infinity_ ? std::numeric_limits<double>::infinity()
                                             : values_[static_cast<std::size_t>(size)];
        return bits & 0x8000 ? -x : x;
    }
    /// values_ goes on to where infinity is, as if there were a next number.
    std::uint16_t nearest(double x) const {
        if (std::isnan(x)) return 0x7fff;
        const double size = std::fabs(x);
        const auto above = std::lower_bound(values_.begin(), values_.end(), size);
        auto at = static_cast<std::size_t>(above - values_.begin());
        if (above == values_.end()) {
            at = static_cast<std::size_t>(infinity_);
        } else if (*above != size) {
            const double middle = (values_[at - 1] + values_[at]) / 2;
            if (size < middle || (size == middle && at % 2 == 1)) --at;
        }
        return static_cast<std::uint16_t>(at | (std::signbit(x) ? 0x8000 : 0));
    }
    /// Each number, the middles between two, and what lies just beside these.
    template <class T>
    std::vector<T> edges() const {
        std::vector<T> out;
        for (std::size_t i = 0; i + 1 < values_.size(); ++i) {
            const T here = static_cast<T>(values_[i]), middle = static_cast<T>((values_[i] + values_[i + 1]) / 2);
            const T most = std::numeric_limits<T>::infinity();
            for (const T x : {here, middle, std::nextafter(middle, -most), std::nextafter(middle, most)})
                out.push_back(i % 3 == 0 ? -x : x);
        }
        return out;
    }

  private:
    int infinity_;
    std::vector<double> values_;
};

const Halves bf16(8, 7), f16(5, 10);

template <class T>
std::vector<T> reals() {
    using L = std::numeric_limits<T>;
    std::vector<T> out = {0, -T{0}, L::infinity(), -L::infinity(), L::quiet_NaN(), L::max(), L::min(), L::denorm_min()};
    for (const Halves* of : {&bf16, &f16}) {
        const std::vector<T> more = of->edges<T>();
        out.insert(out.end(), more.begin(), more.end());
    }
    std::mt19937_64 random(3);
    for (int i = 0; i < 3000; ++i) {
        if constexpr (sizeof(T) == 8)
            out.push_back(std::bit_cast<double>(random()));
        else
            out.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
    }
    return out;
}

bool same(double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

std::int32_t whole_of(float x) {
    if (std::isnan(x)) return 0;
    return static_cast<std::int32_t>(std::clamp(static_cast<double>(x), -2147483648.0, 2147483647.0));
}

TEST(Conversions, OfFloats) {
    std::vector<float> in = reals<float>();
    for (const float x : {2147483648.0f, 2147483520.0f, -2147483648.0f, 1e10f, -1e10f, 0.99999994f, -0.5f, 1.5f, -2.5f})
        in.push_back(x);
    const std::vector<OfFloat> all = of_float(in);
    ASSERT_EQ(all.size(), in.size());
    for (std::size_t i = 0; i < in.size() && !HasFailure(); ++i) {
        const float x = in[i];
        const OfFloat& got = all[i];
        SCOPED_TRACE(std::to_string(x) + ", bits " + std::to_string(std::bit_cast<std::uint32_t>(x)));
        EXPECT_EQ(got.whole, whole_of(x));
        EXPECT_PRED2(same, got.wide, static_cast<double>(x));
        EXPECT_PRED2(same, got.cut, std::trunc(x));
        EXPECT_EQ(got.bf16, bf16.nearest(x));
        EXPECT_EQ(got.f16, f16.nearest(x));
        EXPECT_EQ(got.two_bf16, 0x3f800000u | bf16.nearest(x));
        EXPECT_EQ(got.two_f16, 0x3c000000u | f16.nearest(x));
    }
}

/// Also those that a way over float would round twice.
TEST(Conversions, OfDoubles) {
    const std::vector<double> in = reals<double>();
    const std::vector<OfDouble> all = of_double(in);
    ASSERT_EQ(all.size(), in.size());
    for (std::size_t i = 0; i < in.size() && !HasFailure(); ++i) {
        const double x = in[i];
        SCOPED_TRACE(std::to_string(x) + ", bits " + std::to_string(std::bit_cast<std::uint64_t>(x)));
        EXPECT_PRED2(same, all[i].narrow, static_cast<float>(x));
        EXPECT_EQ(all[i].bf16, bf16.nearest(x));
        EXPECT_EQ(all[i].f16, f16.nearest(x));
    }
}

TEST(Conversions, OfAllHalves) {
    std::vector<std::uint16_t> in(65536);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::uint16_t>(i);
    const std::vector<OfHalf> all = of_half(in);
    for (std::size_t i = 0; i < in.size() && !HasFailure(); ++i) {
        SCOPED_TRACE("bits " + std::to_string(i));
        EXPECT_PRED2(same, all[i].bf16, bf16.value(in[i]));
        EXPECT_PRED2(same, all[i].f16, f16.value(in[i]));
    }
}

TEST(Conversions, OfWholes) {
    std::vector<std::int64_t> in = {0, 1, -1, INT64_MAX, INT64_MIN, (1ll << 53) + 1, (1ll << 24) + 1, (1ll << 25) + 2};
    std::mt19937_64 random(5);
    for (int i = 0; i < 4000; ++i) in.push_back(static_cast<std::int64_t>(random()) >> (random() % 64));
    const std::vector<OfWhole> all = of_whole(in);
    for (std::size_t i = 0; i < in.size() && !HasFailure(); ++i) {
        const std::int64_t x = in[i], low = x & 0xffffffff, s32 = low >= 1ll << 31 ? low - (1ll << 32) : low;
        const OfWhole& got = all[i];
        SCOPED_TRACE(x);
        EXPECT_EQ(got.from_s32, static_cast<float>(s32));
        EXPECT_EQ(got.from_u32, static_cast<float>(low));
        EXPECT_EQ(got.from_s64, static_cast<float>(x));
        EXPECT_EQ(got.wide_from_s32, static_cast<double>(s32));
        EXPECT_EQ(got.wide_from_u32, static_cast<double>(low));
        EXPECT_EQ(got.wide_from_s64, static_cast<double>(x));
        EXPECT_EQ(got.s8, ((x & 255) ^ 128) - 128);
        EXPECT_EQ(got.u8, x & 255);
        EXPECT_EQ(got.s16, ((x & 65535) ^ 32768) - 32768);
        EXPECT_EQ(got.u16, x & 65535);
        EXPECT_EQ(got.s32, s32);
        EXPECT_EQ(got.u32, low);
    }
}

}  // namespace
}  // namespace soft_gpu_own
