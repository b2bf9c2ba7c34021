// Remembers the ids of short pieces of text. Text repeats its words: a hit costs one hash and one cache line or two.
//
// Two ways per set, exchanged on use, so memory is bounded and frequent pieces stay. A key is the piece's bytes padded
// with zeros, its last byte the length; pieces that do not fit, or give too many ids, are not kept.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace tera {

template <int key_words, int max_ids, int log2_sets>
class PieceCache {
  public:
    using Key = std::array<std::uint64_t, key_words>;
    static constexpr std::size_t max_bytes = key_words * 8 - 1;

    PieceCache() : slots_(std::size_t{2} << log2_sets) {}

    /// piece.size() must be in 1..max_bytes.
    static Key key_of(std::string_view piece) {
        Key key{};
        std::memcpy(key.data(), piece.data(), piece.size());
        key[key_words - 1] |= static_cast<std::uint64_t>(piece.size()) << 56;
        return key;
    }

    /// Appends the ids if the piece is known.
    bool find(const Key& key, std::vector<std::int32_t>& ids) {
        Slot* set = &slots_[set_of(key)];
        if (set[0].key != key) {
            if (set[1].key != key) return false;
            std::swap(set[0], set[1]);
        }
        ids.insert(ids.end(), set[0].ids.begin(), set[0].ids.begin() + set[0].count);
        return true;
    }

    void insert(const Key& key, std::span<const std::int32_t> ids) {
        if (ids.size() > max_ids) return;
        Slot& slot = slots_[set_of(key) + 1];
        slot.key = key;
        slot.count = static_cast<std::int32_t>(ids.size());
        std::copy(ids.begin(), ids.end(), slot.ids.begin());
    }

  private:
    struct Slot {
        Key key{};  // the length byte of a real key is never 0
        std::array<std::int32_t, max_ids> ids{};
        std::int32_t count = 0;
    };

    static std::size_t set_of(const Key& key) {
        std::uint64_t hash = 0x9E3779B97F4A7C15;
        for (const std::uint64_t word : key) {
            hash = (hash ^ word) * 0xD6E8FEB86659FD93;
            hash ^= hash >> 32;
        }
        return static_cast<std::size_t>(hash * 0xD6E8FEB86659FD93 >> (64 - log2_sets)) * 2;
    }

    std::vector<Slot> slots_;
};

}  // namespace tera
