// Remembers the ids of words, for encoders that work word by word: text repeats its words.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "token/piece_table.h"

namespace tera {

/// Memory is bounded. One per thread.
class WordCache {
  public:
    /// Calls use(ids of the word). A word that is not known is first encoded by encode(ids), which appends to `ids`.
    template <class Encode, class Use>
    void with_ids(std::string_view word, const Encode& encode, const Use& use) {
        if (word.empty() || word.size() > PieceTable::most_bytes) {
            ids_.clear();
            encode(ids_);
            use(std::span<const std::int32_t>(ids_));
            if (ids_.size() > large) ids_ = {};
            return;
        }
        const PieceTable::Key key = PieceTable::key_of(word);
        const PieceTable::Slot* slot = table_.find(key, key.hash(), word.data());
        if (slot) return use(table_.ids(*slot));
        ids_.clear();
        encode(ids_);
        table_.insert(key, word, ids_);
        use(std::span<const std::int32_t>(ids_));
    }
    /// Appends the ids of a word.
    template <class Encode>
    void append(std::string_view word, std::vector<std::int32_t>& ids, const Encode& encode) {
        with_ids(word, encode,
                 [&](std::span<const std::int32_t> known) { ids.insert(ids.end(), known.begin(), known.end()); });
    }

  private:
    static constexpr std::size_t large = std::size_t{1} << 20;  // ids; above, the memory is given back
    PieceTable table_;
    std::vector<std::int32_t> ids_;  // of a word that is being encoded
};

}  // namespace tera
