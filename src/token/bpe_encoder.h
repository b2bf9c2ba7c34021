// Text to ids by byte-level BPE: cut into pieces, look each piece up among those seen before, merge the rest.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "token/bpe.h"
#include "token/piece_cache.h"
#include "token/pretokenize.h"
#include "token/tokenizer.h"

namespace tera {

class BpeEncoder : public Encoder {
  public:
    /// The model must outlive the encoder.
    BpeEncoder(const BpeModel& model, PretokenPattern pattern) : merger_(model), pattern_(pattern) {}

    /// Appends the ids of all pieces of the text.
    void encode(std::string_view text, std::vector<std::int32_t>& ids) override;
    /// Appends the ids of a text that is one piece, for patterns that token/pretokenize.h does not know.
    void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids);

  private:
    using ShortCache = PieceCache<2, 3, 15>;  // 2 MiB of 32-byte slots
    using LongCache = PieceCache<4, 7, 13>;   // 1 MiB of 64-byte slots

    void add_piece(std::string_view piece, std::vector<std::int32_t>& ids);
    template <class Cache>
    void add_cached(Cache& cache, std::string_view piece, std::vector<std::int32_t>& ids);
    void flush(std::vector<std::int32_t>& ids);

    BpeMerger merger_;
    PretokenPattern pattern_;
    ShortCache short_cache_;
    LongCache long_cache_;
    std::array<std::int32_t, 1024> ready_;  // ids found in the caches, on their way to the caller
    std::size_t used_ = 0;
};

}  // namespace tera
