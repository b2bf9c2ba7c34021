// --mock-data: 100 000 made-up documents, the same for everybody. Lengths are uniform in [1, 4096); a document of
// length m reads 1, 2, ..., m-1 (modulo the vocabulary size), eod.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/sequence_source.h"

namespace tera {

class MockSource : public SequenceSource {
  public:
    /// vocab_size 0: no modulo.
    MockSource(std::int32_t eod_id, std::int64_t vocab_size);

    const std::string& path() const override { return path_; }
    std::int64_t size() const override { return static_cast<std::int64_t>(lengths_.size()); }
    const std::byte* lengths() const override { return reinterpret_cast<const std::byte*>(lengths_.data()); }
    void get(std::int64_t i, std::int64_t offset, std::int64_t count, std::int32_t* out) const override;

  private:
    std::string path_;
    std::int32_t eod_id_;
    std::int64_t vocab_size_;
    std::vector<std::int32_t> lengths_;
};

}  // namespace tera
