// A numbered set of training samples, each a run of token ids of the same length.
#pragma once

#include <cstdint>

namespace tera {

class SampleDataset {
  public:
    virtual ~SampleDataset() = default;

    /// Number of samples.
    virtual std::int64_t size() const = 0;
    /// Token ids per sample, S + 1 (S inputs and, shifted by one, S labels).
    virtual std::int64_t sample_length() const = 0;
    /// Writes the sample_length() ids of sample i, filled up with the pad id where the data ends. Returns the number of
    /// the source it came from (0 if there is only one). Safe from any number of threads.
    virtual std::int32_t read(std::int64_t i, std::int32_t* out) const = 0;
};

}  // namespace tera
