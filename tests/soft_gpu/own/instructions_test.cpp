// Instructions against the host's arithmetic, or against their definitions.
#include "soft_gpu/own/instructions.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>

extern "C" int soft_gpu_faults();
extern "C" void soft_gpu_forget_faults();

namespace soft_gpu_own {
namespace {

class Instructions : public testing::Test {
  protected:
    void SetUp() override { faults_ = soft_gpu_faults(); }
    void TearDown() override {
        EXPECT_EQ(soft_gpu_faults(), faults_);
        EXPECT_EQ(cudaGetLastError(), cudaSuccess);
        soft_gpu_forget_faults();
    }

  private:
    int faults_ = 0;
};

template <class T>
std::string bits_of(T x) {
    using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    return std::to_string(x) + " (" + std::to_string(std::bit_cast<Bits>(x)) + ")";
}

/// The same bits, or both no number.
template <class T>
bool same(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) {
        using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
        return (std::isnan(a) && std::isnan(b)) || std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b);
    } else {
        return a == b;
    }
}

/// Fields of two structures, named; says of which inputs.
#define EXPECT_SAME(field) \
    EXPECT_TRUE(same(got.field, want.field)) << #field << " is " << +got.field << ", not " << +want.field << inputs

/// Edge cases, each with each other, and random ones of all sizes.
template <class T>
struct Pairs {
    std::vector<T> a, b, c;
    void add(T x, T y, T z) { a.push_back(x), b.push_back(y), c.push_back(z); }
    explicit Pairs(const std::vector<T>& edges, std::mt19937_64 random = std::mt19937_64(7)) {
        for (const T x : edges)
            for (const T y : edges) add(x, y, edges[random() % edges.size()]);
        for (int i = 0; i < 3000; ++i) add(any(random), any(random), any(random));
    }
    static T any(std::mt19937_64& random) {
        if constexpr (std::is_same_v<T, float>)
            return std::bit_cast<float>(static_cast<std::uint32_t>(random()));
        else if constexpr (std::is_same_v<T, double>)
            return std::bit_cast<double>(random());
        else
            return static_cast<T>(random() >> (random() % 64));
    }
};

template <class T>
std::vector<T> edges_of_wholes() {
    using L = std::numeric_limits<T>;
    std::vector<T> out = {0, 1, 2, 3, 7, 10, 255, 1 << 16, L::max(), L::max() / 2, L::min(), L::min() + 1};
    for (const int n : {8, 31, 32, 33, 63, 64, 65, 127}) out.push_back(static_cast<T>(n));
    for (const int n : {-1, -2, -3, -7, -65536}) out.push_back(static_cast<T>(n));
    return out;
}

template <class T>
OfWholes<T> wholes_by_hand(T a, T b) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    constexpr int bits = 8 * sizeof(T);
    const Wide x = a, y = b;
    OfWholes<T> out{};
    out.sum = static_cast<T>(x + y);
    out.difference = static_cast<T>(x - y);
    out.product = static_cast<T>(static_cast<unsigned __int128>(x) * static_cast<unsigned __int128>(y));
    out.high = static_cast<T>((x * y) >> bits);
    if (y != 0 && x / y == static_cast<T>(x / y)) {
        out.quotient = static_cast<T>(x / y);
        out.remainder = static_cast<T>(x % y);
    }
    const int n = static_cast<int>(b & 255);
    out.left = n >= bits ? T{0} : static_cast<T>(static_cast<unsigned __int128>(x) << n);
    out.right = static_cast<T>(x >> std::min(n, 127));
    out.smaller = std::min(a, b);
    out.larger = std::max(a, b);
    out.both = a & b;
    out.either = a | b;
    out.one_of = a ^ b;
    out.negative = static_cast<T>(-x);
    out.less = a < b;
    out.same = a == b;
    return out;
}

template <class T>
void check_wholes() {
    const Pairs<T> in(edges_of_wholes<T>());
    const std::vector<OfWholes<T>> all = of_wholes(in.a, in.b);
    ASSERT_EQ(all.size(), in.a.size());
    for (std::size_t i = 0; i < all.size() && !testing::Test::HasFailure(); ++i) {
        const OfWholes<T>&got = all[i], want = wholes_by_hand(in.a[i], in.b[i]);
        const std::string inputs = " for " + std::to_string(in.a[i]) + ", " + std::to_string(in.b[i]);
        EXPECT_SAME(sum);
        EXPECT_SAME(difference);
        EXPECT_SAME(product);
        EXPECT_SAME(high);
        EXPECT_SAME(quotient);
        EXPECT_SAME(remainder);
        EXPECT_SAME(left);
        EXPECT_SAME(right);
        EXPECT_SAME(smaller);
        EXPECT_SAME(larger);
        EXPECT_SAME(both);
        EXPECT_SAME(either);
        EXPECT_SAME(one_of);
        EXPECT_SAME(negative);
        EXPECT_SAME(less);
        EXPECT_SAME(same);
    }
}

TEST_F(Instructions, OfWholesOf32Bits) { check_wholes<std::int32_t>(); }
TEST_F(Instructions, OfWholesOf32BitsWithoutSign) { check_wholes<std::uint32_t>(); }
TEST_F(Instructions, OfWholesOf64Bits) { check_wholes<std::int64_t>(); }
TEST_F(Instructions, OfWholesOf64BitsWithoutSign) { check_wholes<std::uint64_t>(); }

template <class T>
std::vector<T> edges_of_reals() {
    using L = std::numeric_limits<T>;
    std::vector<T> out = {0,        1,           2, 3, T{0.1}, T{1} / 3, L::min(), L::min() / 2, L::denorm_min(),
                          L::max(), L::epsilon()};
    out.insert(out.end(), {1 + L::epsilon(), 1 - L::epsilon() / 2, L::infinity(), L::quiet_NaN(), T{1e-30}, T{1e30}});
    for (std::size_t i = 0, n = out.size(); i < n; ++i) out.push_back(-out[i]);
    return out;
}

/// Of a number and none the number is taken; zeros are in order.
template <class T>
T smaller_of(T a, T b) {
    if (std::isnan(a)) return b;
    if (std::isnan(b)) return a;
    if (a == b) return std::signbit(a) ? a : b;
    return a < b ? a : b;
}

/// No number, of the kind that some processors trap on; the GPU knows no such kind.
template <class T>
bool signals(T x) {
    if constexpr (sizeof(T) == 8)
        return std::isnan(x) && !(std::bit_cast<std::uint64_t>(x) >> 51 & 1);
    else
        return std::isnan(x) && !(std::bit_cast<std::uint32_t>(x) >> 22 & 1);
}

template <class T>
void check_reals() {
    const Pairs<T> in(edges_of_reals<T>());
    const std::vector<OfReals<T>> all = of_reals(in.a, in.b, in.c);
    ASSERT_EQ(all.size(), in.a.size());
    for (std::size_t i = 0; i < all.size() && !testing::Test::HasFailure(); ++i) {
        const T a = in.a[i], b = in.b[i], c = in.c[i];
        const volatile T x = a, y = b;  // so that each is rounded by itself
        const OfReals<T> want = {x + y,
                                 x - y,
                                 x * y,
                                 x / y,
                                 std::fma(a, b, c),
                                 smaller_of(a, b),
                                 -smaller_of<T>(-a, -b),
                                 std::sqrt(a),
                                 1 / x,
                                 std::fabs(a),
                                 std::copysign(a, b),
                                 a < b,
                                 a == b,
                                 !(a < b),
                                 a != b};
        const OfReals<T>& got = all[i];
        const std::string inputs = " for " + bits_of(a) + ", " + bits_of(b) + ", " + bits_of(c);
        EXPECT_SAME(sum);
        EXPECT_SAME(difference);
        EXPECT_SAME(product);
        EXPECT_SAME(quotient);
        EXPECT_SAME(fused);
        if ((a != 0 || b != 0) && !signals(a) && !signals(b)) {  // those are in a test of their own
            EXPECT_SAME(smaller);
            EXPECT_SAME(larger);
        }
        EXPECT_SAME(root);
        EXPECT_SAME(reciprocal);
        EXPECT_SAME(size);
        EXPECT_SAME(signed_as);
        EXPECT_SAME(less);
        EXPECT_SAME(same);
        EXPECT_SAME(at_least);
        EXPECT_SAME(differs);
    }
}

TEST_F(Instructions, OfFloats) { check_reals<float>(); }
TEST_F(Instructions, OfDoubles) { check_reals<double>(); }

template <class T>
void check_extremes() {
    const T none = std::numeric_limits<T>::signaling_NaN();
    const std::vector<T> a = {0, -T{0}, none, 1, none, -2}, b = {-T{0}, 0, 1, none, -2, none};
    const std::vector<OfReals<T>> all = of_reals(a, b, a);
    for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_TRUE(same(all[i].smaller, smaller_of(a[i], b[i]))) << all[i].smaller << " of " << a[i] << ", " << b[i];
        EXPECT_TRUE(same(all[i].larger, -smaller_of<T>(-a[i], -b[i])))
            << all[i].larger << " of " << a[i] << ", " << b[i];
    }
}
TEST_F(Instructions, ExtremesOfZerosAndOfNoNumbers) {
    check_extremes<float>();
    check_extremes<double>();
}

TEST_F(Instructions, OfBits) {
    const Pairs<std::uint32_t> in(edges_of_wholes<std::uint32_t>());
    const std::vector<OfBits> all = of_bits(in.a);
    for (std::size_t i = 0; i < all.size() && !HasFailure(); ++i) {
        const std::uint32_t a = in.a[i];
        std::uint32_t reversed = 0;
        for (int k = 0; k < 32; ++k)
            if (a >> k & 1) reversed |= 1u << (31 - k);
        std::uint8_t bytes[8], chosen[4];
        std::memcpy(bytes, &a, 4);
        for (int k = 0; k < 4; ++k) bytes[4 + k] = static_cast<std::uint8_t>(~bytes[k]);
        for (int k = 0; k < 4; ++k) {
            const std::uint32_t nibble = a >> (4 * k) & 15;
            chosen[k] = bytes[nibble % 8];
            if (nibble >= 8) chosen[k] = chosen[k] >= 128 ? 255 : 0;
        }
        const OfBits &got = all[i], want = {static_cast<std::uint32_t>(std::popcount(a)), reversed,
                                            std::bit_cast<std::uint32_t>(chosen),
                                            a == 0 ? ~0u : static_cast<std::uint32_t>(std::countl_zero(a))};
        const std::string inputs = " for " + std::to_string(a);
        EXPECT_SAME(ones);
        EXPECT_SAME(reversed);
        EXPECT_SAME(permuted);
        EXPECT_SAME(to_the_top);
    }
}

/// Near enough, or the same where it is no number or infinite.
void expect_near(double got, double want, double error, float x) {
    if (std::isfinite(want))
        EXPECT_NEAR(got, want, error * std::fabs(want)) << x;
    else
        EXPECT_TRUE(same(got, want)) << got << ", not " << want << " for " << x;
}

TEST_F(Instructions, Functions) {
    std::vector<float> in = {0.0f, -0.0f, 1.0f, 2.0f, INFINITY, -INFINITY, NAN, 1e-30f, 1e30f};
    for (int i = -12600; i < 12800; i += 7) in.push_back(static_cast<float>(i) / 100);
    const std::vector<soft_gpu_own::Functions> all = functions(in);
    for (std::size_t i = 0; i < in.size() && !HasFailure(); ++i) {
        const double x = in[i];
        expect_near(all[i].power_of_two, std::exp2(x), 3e-7, in[i]);
        expect_near(all[i].inverse, 1 / x, 2e-7, in[i]);
        expect_near(all[i].log, std::log(x), 3e-7, in[i]);
        expect_near(all[i].wide_exp, std::exp(x), 1e-15, in[i]);
        expect_near(all[i].wide_log, std::log(x), 1e-15, in[i]);
    }
}

}  // namespace
}  // namespace soft_gpu_own
