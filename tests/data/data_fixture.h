// Small corpora for the data tests.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "data/indexed_dataset_writer.h"
#include "data/sequence_source.h"
#include "io/npy.h"

namespace tera {

/// Sequences in memory.
class VectorSource : public SequenceSource {
  public:
    explicit VectorSource(std::vector<std::vector<std::int32_t>> sequences) : sequences_(std::move(sequences)) {
        for (const auto& s : sequences_) lengths_.push_back(static_cast<std::int32_t>(s.size()));
    }
    /// Sequences of the given lengths; token j of sequence i is 100·i + j.
    static VectorSource of_lengths(const std::vector<std::int32_t>& lengths) {
        std::vector<std::vector<std::int32_t>> sequences(lengths.size());
        for (std::size_t i = 0; i < lengths.size(); ++i)
            for (std::int32_t j = 0; j < lengths[i]; ++j)
                sequences[i].push_back(100 * static_cast<std::int32_t>(i) + j);
        return VectorSource(std::move(sequences));
    }
    const std::string& path() const override { return path_; }
    std::int64_t size() const override { return static_cast<std::int64_t>(lengths_.size()); }
    const std::byte* lengths() const override { return reinterpret_cast<const std::byte*>(lengths_.data()); }
    void get(std::int64_t i, std::int64_t offset, std::int64_t count, std::int32_t* out) const override {
        const auto& s = sequences_[static_cast<std::size_t>(i)];
        std::copy_n(s.begin() + offset, count, out);
    }

  private:
    std::string path_ = "memory";
    std::vector<std::vector<std::int32_t>> sequences_;
    std::vector<std::int32_t> lengths_;
};

/// Every sequence a document of its own.
inline void write_corpus(const std::string& prefix, const std::vector<std::vector<std::int32_t>>& sequences,
                         TokenType type = TokenType::u16) {
    IndexedDatasetWriter writer(prefix, type);
    for (const auto& s : sequences) {
        writer.add_sequence(s);
        writer.end_document();
    }
    writer.finish();
}

inline std::vector<std::int64_t> to_vector(const NpyArray& array) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < array.size(); ++i) values.push_back(array[i]);
    return values;
}

inline std::string slurp(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

}  // namespace tera
