// Remembers the ids of words, for encoders that work word by word: text repeats its words.
#pragma once

#include <array>
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
        const Place place = is_kept(word) ? place_of(word) : Place{};
        with_ids_at(
            place, word, [&](std::string_view, std::vector<std::int32_t>& ids) { encode(ids); }, use);
    }
    /// Calls use(ids) for each of the words in turn, at most most_words; encode(word, ids) as above. Their places in
    /// the table are fetched first, so that the waits for memory overlap.
    static constexpr std::size_t most_words = 64;
    template <class Encode, class Use>
    void with_ids_of_all(std::span<const std::string_view> words, const Encode& encode, const Use& use) {
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (!is_kept(words[i])) continue;
            places_[i] = place_of(words[i]);
            table_.prefetch(places_[i].hash);
        }
        for (std::size_t i = 0; i < words.size(); ++i) with_ids_at(places_[i], words[i], encode, use);
    }
    /// Appends the ids of a word.
    template <class Encode>
    void append(std::string_view word, std::vector<std::int32_t>& ids, const Encode& encode) {
        with_ids(word, encode,
                 [&](std::span<const std::int32_t> known) { ids.insert(ids.end(), known.begin(), known.end()); });
    }

  private:
    struct Place {
        PieceTable::Key key;
        std::uint64_t hash = 0;
    };
    static bool is_kept(std::string_view word) { return !word.empty() && word.size() <= PieceTable::most_bytes; }
    static Place place_of(std::string_view word) {
        const PieceTable::Key key = PieceTable::key_of(word);
        return {key, key.hash()};
    }
    template <class Encode, class Use>
    void with_ids_at(const Place& place, std::string_view word, const Encode& encode, const Use& use) {
        const PieceTable::Slot* slot = is_kept(word) ? table_.find(place.key, place.hash, word.data()) : nullptr;
        if (slot) return use(table_.ids(*slot));
        ids_.clear();
        encode(word, ids_);
        if (is_kept(word)) table_.insert(place.key, word, ids_);
        use(std::span<const std::int32_t>(ids_));
        if (ids_.size() > large) ids_ = {};
    }

    static constexpr std::size_t large = std::size_t{1} << 20;  // ids; above, the memory is given back
    PieceTable table_;
    std::array<Place, most_words> places_;
    std::vector<std::int32_t> ids_;  // of a word that is being encoded
};

}  // namespace tera
