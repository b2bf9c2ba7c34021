// Learns a byte-level BPE vocabulary: count the pieces of the text, then again and again make a token of the most
// frequent adjacent pair. Equal counts go to the pair with the lower ids, so the result depends only on the text; it is
// the one that Hugging Face's BpeTrainer gives with the ByteLevel pre-tokenizer and its alphabet of 256 bytes.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "token/bpe_files.h"

namespace tera {

/// How often each piece of the GPT-2 pattern occurs.
class PieceCounter {
  public:
    void add(std::string_view text);
    /// Adds the counts of another counter.
    void merge(const PieceCounter& other);

    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
    };
    using Counts = std::unordered_map<std::string, std::int64_t, Hash, std::equal_to<>>;
    const Counts& counts() const { return counts_; }

  private:
    Counts counts_;
};

struct BpeTrainOptions {
    std::int64_t vocab_size = 0;     // special tokens, 256 bytes and merges; at least 257
    std::int64_t min_frequency = 2;  // a pair seen less often is not merged
    std::vector<std::string> special_tokens = {std::string(end_of_text)};  // get the first ids
    std::function<void(std::int64_t done, std::int64_t total)> progress;   // tokens learnt so far
};

struct TrainedBpe {
    BpeVocab vocab;  // smaller than asked if the text has no more pairs
    BpeMerges merges;
};

/// UsageError if vocab_size is too small for the bytes and special tokens, or beyond 2^24.
void check_train_options(const BpeTrainOptions& options);

/// Checks the options and learns.
TrainedBpe train_bpe(const PieceCounter& pieces, const BpeTrainOptions& options);

}  // namespace tera
