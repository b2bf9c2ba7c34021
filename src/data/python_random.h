// Python's random.Random(seed): MT19937 seeded as an array of one word, for orders that users of Python tools know.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace tera {

class PythonRandom {
  public:
    explicit PythonRandom(std::uint32_t seed);

    /// Uniform in [0, n): as many top bits of a word as n needs, drawn again while they are too large. n < 2^32.
    std::uint32_t below(std::uint32_t n);

    /// random.shuffle: from the end, each with one at or before it.
    template <class T>
    void shuffle(std::vector<T>& items) {
        for (std::size_t i = items.size(); i-- > 1;)
            std::swap(items[i], items[below(static_cast<std::uint32_t>(i + 1))]);
    }

  private:
    std::mt19937 engine_;
};

}  // namespace tera
