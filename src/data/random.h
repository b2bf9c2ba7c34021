// The random numbers that decide the order of the data, bit for bit as numpy and torch draw them.
//
// Datasets use numpy's RandomState (MT19937 with masked rejection), the cyclic sampler torch's CPU generator (the same
// MT19937, used with a remainder), mock data numpy's default generator (PCG64).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace tera {

/// MT19937; the output of std::mt19937(seed), made 624 words at a time.
class Mt19937 {
  public:
    explicit Mt19937(std::uint32_t seed);
    std::uint32_t next() {
        if (position_ == words) refill();
        return output_[position_++];
    }

  private:
    static constexpr int words = 624;
    void refill();

    std::array<std::uint32_t, words> state_, output_;
    int position_ = words;
};

/// numpy.random.RandomState(seed).
class NumpyRandom {
  public:
    explicit NumpyRandom(std::uint32_t seed) : engine_(seed) {}

    std::uint32_t u32() { return engine_.next(); }
    /// Uniform in [0, 1), 53 bits.
    double random();
    /// Uniform in [0, max], by masked rejection.
    std::uint64_t interval(std::uint64_t max);
    /// Uniform in [low, high).
    std::int64_t randint(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(interval(static_cast<std::uint64_t>(high - 1 - low)));
    }
    /// Index drawn with the given probabilities.
    std::int64_t choice(std::span<const double> probabilities);
    /// Number of trials up to the first success, each with probability p.
    std::int64_t geometric(double p);
    /// Fisher-Yates from the end, as RandomState.shuffle.
    void shuffle(std::span<std::int16_t> x);
    void shuffle(std::span<std::int32_t> x);
    void shuffle(std::span<std::uint32_t> x);
    void shuffle(std::span<std::int64_t> x);

  private:
    Mt19937 engine_;
};

/// A torch CPU generator after manual_seed(seed).
class TorchRandom {
  public:
    explicit TorchRandom(std::uint64_t seed) : engine_(static_cast<std::uint32_t>(seed)) {}

    /// float32 uniform in [0, 1), 24 bits.
    float uniform() { return static_cast<float>(engine_.next() & 0xFFFFFF) * (1.0f / 16777216.0f); }
    /// torch.randperm(n).
    std::vector<std::int64_t> randperm(std::int64_t n);

  private:
    Mt19937 engine_;
};

/// numpy.random.default_rng(0): PCG64 (XSL-RR 128/64) from its state after seeding with 0.
class Pcg64 {
  public:
    Pcg64();
    std::uint64_t u64();
    /// Low half of a 64-bit draw, then its high half.
    std::uint32_t u32();
    double random() { return static_cast<double>(u64() >> 11) * 0x1p-53; }
    /// Generator.integers(low, high, dtype=int32).
    std::int32_t integer(std::int32_t low, std::int32_t high);

  private:
    unsigned __int128 state_;
    std::uint32_t spare_ = 0;
    bool has_spare_ = false;
};

}  // namespace tera
