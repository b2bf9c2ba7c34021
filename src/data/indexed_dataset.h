// Megatron's tokenised corpus: PREFIX.bin holds the token ids of all sequences one after the other, PREFIX.idx says
// where each begins.
//
//   offset       size  content of .idx (little-endian, arrays unaligned)
//   0            9     "MMIDIDX\0\0"
//   9            8     u64 version = 1
//   17           1     u8 element type of .bin (TokenType)
//   18           8     u64 S, number of sequences
//   26           8     u64 D, length of the document index (documents + 1)
//   34           4·S   int32 length of each sequence, in tokens
//   34 + 4·S     8·S   int64 byte offset of each sequence in .bin: the running sum of length × element size
//   34 + 12·S    8·D   int64 document index: 0, then the number of sequences up to the end of each document
//   34 + 12·S + 8·D  S int8 mode of each sequence (0 text, 1 image); in multimodal files only
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "data/sequence_source.h"
#include "io/mapped_file.h"

namespace tera {

enum class TokenType : std::uint8_t { u8 = 1, i8 = 2, i16 = 3, i32 = 4, i64 = 5, f64 = 6, f32 = 7, u16 = 8 };

std::int64_t item_size(TokenType type);
/// numpy's name: "uint16", ...
const char* type_name(TokenType type);
/// What the writer stores for a vocabulary (unpadded size): uint16 below 65500, else int32.
TokenType token_type_for(std::int64_t vocab_size);

/// A .idx image, checked. Points into the bytes it was made from.
class SequenceIndex {
  public:
    static constexpr std::int64_t header_size = 34;

    SequenceIndex() = default;
    /// Checks magic, version, type, that the counts fit the size, that lengths are not negative, that offsets are the
    /// running sum of the lengths, and that the document index rises from 0 to S. `name` is for messages (the path).
    /// UsageError on the first thing that is wrong.
    static SequenceIndex parse(std::span<const std::byte> bytes, const std::string& name);

    TokenType type() const { return type_; }
    /// Bytes per token in .bin: that of the type, except that files from before 2023 store code 7 in 8 bytes.
    std::int64_t token_size() const { return token_size_; }
    std::int64_t sequences() const { return sequences_; }
    std::int64_t documents() const { return document_indices_ - 1; }
    std::int64_t tokens() const { return tokens_; }
    std::int64_t bin_size() const { return tokens_ * token_size_; }
    bool has_modes() const { return modes_ != nullptr; }

    std::int32_t length(std::int64_t i) const { return load<std::int32_t>(lengths_ + 4 * i); }
    std::int64_t offset(std::int64_t i) const { return load<std::int64_t>(offsets_ + 8 * i); }
    /// i in [0, documents()]: the first sequence of document i; the last entry is sequences().
    std::int64_t document_index(std::int64_t i) const { return load<std::int64_t>(documents_ + 8 * i); }
    std::int8_t mode(std::int64_t i) const { return static_cast<std::int8_t>(modes_[i]); }

    const std::byte* lengths() const { return lengths_; }
    /// sequences() int8 values; null unless has_modes().
    const std::byte* modes() const { return modes_; }

  private:
    template <class T>
    static T load(const std::byte* p) {
        T value;
        std::memcpy(&value, p, sizeof(T));
        return value;
    }
    void check_sequences(const std::string& name);
    void check_documents(const std::string& name) const;

    TokenType type_ = TokenType::i32;
    std::int64_t token_size_ = 4, sequences_ = 0, document_indices_ = 1, tokens_ = 0;
    const std::byte *lengths_ = nullptr, *offsets_ = nullptr, *documents_ = nullptr, *modes_ = nullptr;
};

class IndexedDataset : public SequenceSource {
  public:
    /// Opens PREFIX.idx and checks it whole, and that PREFIX.bin is there and long enough. PREFIX.bin itself is opened
    /// at the first read: mapped, or read by position if map_bin is false (--no-mmap-bin-files).
    explicit IndexedDataset(std::string prefix, bool map_bin = true);
    ~IndexedDataset() override;

    const std::string& path() const override { return prefix_; }
    std::int64_t size() const override { return index_.sequences(); }
    const std::byte* lengths() const override { return index_.lengths(); }
    /// The range must lie inside the sequence. UsageError if a stored value is no int32.
    void get(std::int64_t i, std::int64_t offset, std::int64_t count, std::int32_t* out) const override;

    const SequenceIndex& index() const { return index_; }
    std::string bin_path() const { return prefix_ + ".bin"; }
    std::string idx_path() const { return prefix_ + ".idx"; }
    /// The mapped .bin, at least index().bin_size() long.
    std::span<const std::byte> bin() const;

  private:
    void read_bin(std::int64_t position, std::int64_t size, std::byte* out) const;

    std::string prefix_;
    MappedFile idx_;
    SequenceIndex index_;
    bool map_bin_;
    mutable std::mutex open_mutex_;
    mutable std::atomic<const std::byte*> bin_data_{nullptr};
    mutable MappedFile bin_;
    mutable std::atomic<int> bin_fd_{-1};
};

}  // namespace tera
