#include "data/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"

namespace tera {
namespace {

constexpr int twist_distance = 397;

std::uint32_t twist(std::uint32_t upper, std::uint32_t lower) {
    const std::uint32_t y = (upper & 0x80000000u) | (lower & 0x7fffffffu);
    return (y >> 1) ^ ((0u - (y & 1u)) & 0x9908b0dfu);
}

/// Positions that a block of swaps will touch: drawn ahead of the swaps, so that their cache misses overlap.
constexpr std::int64_t block = 256;

/// Makes a permutation of 0, 1, ... by putting each number at a random place among those before it, with 64-bit draws.
void shuffle_inside_out(Mt19937& engine, std::span<std::int64_t> x) {
    std::array<std::size_t, block> targets;
    for (std::size_t i = 0; i < x.size();) {
        const auto count = std::min<std::size_t>(block, x.size() - i);
        for (std::size_t k = 0; k < count; ++k) {
            std::uint64_t v = engine.next();
            v = v << 32 | engine.next();
            targets[k] = v % (i + k + 1);
            __builtin_prefetch(x.data() + targets[k], 1);
        }
        for (std::size_t k = 0; k < count; ++k, ++i) {
            x[i] = x[targets[k]];
            x[targets[k]] = static_cast<std::int64_t>(i);
        }
    }
}

template <class T>
void shuffle_numpy(NumpyRandom& random, std::span<T> x) {
    T* const data = x.data();
    auto i = static_cast<std::int64_t>(x.size()) - 1;
    std::array<std::uint32_t, block> targets;
    for (; i > std::int64_t{0xFFFFFFFF}; --i)  // here numpy draws 64 bits
        std::swap(data[i], data[random.interval(static_cast<std::uint64_t>(i))]);
    while (i >= 1) {
        const std::int64_t count = std::min(block, i);
        std::int64_t bound = i;
        for (std::int64_t k = 0; k < count;) {
            const auto mask = static_cast<std::uint32_t>(std::bit_ceil(static_cast<std::uint64_t>(bound) + 1) - 1);
            const std::uint32_t v = random.u32() & mask;
            targets[static_cast<std::size_t>(k)] = v;
            __builtin_prefetch(data + v, 1);
            const std::int64_t accepted = v <= bound ? 1 : 0;  // no branch: half of the draws may be refused
            k += accepted;
            bound -= accepted;
        }
        for (std::int64_t k = 0; k < count; ++k, --i) std::swap(data[i], data[targets[static_cast<std::size_t>(k)]]);
    }
}

}  // namespace

Mt19937::Mt19937(std::uint32_t seed) {
    state_[0] = seed;
    for (std::uint32_t i = 1; i < words; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
}

void Mt19937::refill() {
    std::uint32_t* const x = state_.data();
    constexpr int first = words - twist_distance;
    for (int k = 0; k < first; ++k) x[k] = x[k + twist_distance] ^ twist(x[k], x[k + 1]);
    for (int k = first; k < words - 1; ++k) x[k] = x[k - first] ^ twist(x[k], x[k + 1]);
    x[words - 1] = x[twist_distance - 1] ^ twist(x[words - 1], x[0]);
    for (int k = 0; k < words; ++k) {
        std::uint32_t y = x[k];
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        output_[static_cast<std::size_t>(k)] = y ^ (y >> 18);
    }
    position_ = 0;
}

double NumpyRandom::random() {
    const std::uint32_t high = u32() >> 5;
    const std::uint32_t low = u32() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

std::uint64_t NumpyRandom::interval(std::uint64_t max) {
    if (max == 0) return 0;
    const std::uint64_t mask = ~std::uint64_t{0} >> std::countl_zero(max);
    while (true) {
        std::uint64_t v = u32();
        if (max > 0xFFFFFFFFu) v = v << 32 | u32();
        if ((v &= mask) <= max) return v;
    }
}

std::int64_t NumpyRandom::choice(std::span<const double> probabilities) {
    TERA_CHECK(!probabilities.empty(), "choice among nothing");
    std::vector<double> cdf(probabilities.size());
    std::partial_sum(probabilities.begin(), probabilities.end(), cdf.begin());
    const double total = cdf.back();
    for (double& c : cdf) c /= total;
    const double u = random();
    return std::upper_bound(cdf.begin(), cdf.end(), u) - cdf.begin();
}

std::int64_t NumpyRandom::geometric(double p) {
    TERA_CHECK(p > 0.0 && p <= 1.0, "p = ", p);
    if (p < 1.0 / 3.0) return static_cast<std::int64_t>(std::ceil(std::log1p(-random()) / std::log(1.0 - p)));
    const double u = random();
    double sum = p, term = p;
    std::int64_t trials = 1;
    while (u > sum) {
        term *= 1.0 - p;
        sum += term;
        ++trials;
    }
    return trials;
}

void NumpyRandom::shuffle(std::span<std::int16_t> x) { shuffle_numpy(*this, x); }
void NumpyRandom::shuffle(std::span<std::int32_t> x) { shuffle_numpy(*this, x); }
void NumpyRandom::shuffle(std::span<std::uint32_t> x) { shuffle_numpy(*this, x); }
void NumpyRandom::shuffle(std::span<std::int64_t> x) { shuffle_numpy(*this, x); }

std::vector<std::int64_t> TorchRandom::randperm(std::int64_t n) {
    TERA_CHECK(n >= 0, "n = ", n);
    std::vector<std::int64_t> x(static_cast<std::size_t>(n));
    // torch goes over to another method here, so that the remainder stays nearly uniform.
    if (n >= std::int64_t{0xFFFFFFFF} / 20) {
        shuffle_inside_out(engine_, x);
        return x;
    }
    std::iota(x.begin(), x.end(), std::int64_t{0});
    std::array<std::uint32_t, block> targets;
    const auto last = static_cast<std::uint32_t>(std::max<std::int64_t>(n - 1, 0));
    for (std::uint32_t i = 0; i < last;) {
        const auto count = std::min<std::uint32_t>(block, last - i);
        for (std::uint32_t k = 0; k < count; ++k) {
            targets[k] = i + k + engine_.next() % (last + 1 - i - k);
            __builtin_prefetch(x.data() + targets[k], 1);
        }
        for (std::uint32_t k = 0; k < count; ++k, ++i) std::swap(x[i], x[targets[k]]);
    }
    return x;
}

namespace {

constexpr unsigned __int128 wide_constant(std::uint64_t high, std::uint64_t low) {
    return static_cast<unsigned __int128>(high) << 64 | low;
}

}  // namespace

Pcg64::Pcg64() : state_(wide_constant(0x1aa1b5345996452dULL, 0x09585eb7a69561e3ULL)) {}

std::uint64_t Pcg64::u64() {
    constexpr unsigned __int128 multiplier = wide_constant(0x2360ed051fc65da4ULL, 0x4385df649fccf645ULL);
    constexpr unsigned __int128 increment = wide_constant(0x418ddadb3af71a82ULL, 0x588133bc447873a9ULL);
    state_ = state_ * multiplier + increment;
    const auto folded = static_cast<std::uint64_t>(state_ >> 64) ^ static_cast<std::uint64_t>(state_);
    return std::rotr(folded, static_cast<int>(state_ >> 122));
}

std::uint32_t Pcg64::u32() {
    if (has_spare_) {
        has_spare_ = false;
        return spare_;
    }
    const std::uint64_t v = u64();
    spare_ = static_cast<std::uint32_t>(v >> 32);
    has_spare_ = true;
    return static_cast<std::uint32_t>(v);
}

std::int32_t Pcg64::integer(std::int32_t low, std::int32_t high) {
    TERA_CHECK(low < high, "empty range");
    const auto range = static_cast<std::uint32_t>(high - 1 - low);
    if (range == 0) return low;
    const std::uint32_t count = range + 1;
    std::uint64_t m = std::uint64_t{u32()} * count;
    const std::uint32_t threshold = (0xFFFFFFFFu - range) % count;
    while (static_cast<std::uint32_t>(m) < threshold) m = std::uint64_t{u32()} * count;
    return low + static_cast<std::int32_t>(m >> 32);
}

}  // namespace tera
