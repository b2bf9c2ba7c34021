// Remembers the ids of short pieces of text. Text repeats its words: a hit costs one hash and one cache line or two.
//
// Two ways per set, exchanged on use, so memory is bounded and frequent pieces stay. A key is the piece's bytes padded
// with zeros, its last byte the length; pieces that do not fit, or give too many ids, are not kept.
#pragma once

#include <algorithm>
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
    static constexpr std::size_t most_ids = max_ids;
    using Key = std::array<std::uint64_t, key_words>;
    static constexpr std::size_t max_bytes = key_words * 8 - 1;

    PieceCache() : slots_(std::size_t{2} << log2_sets) {}

    /// piece.size() must be in 1..max_bytes.
    static Key key_of(std::string_view piece) {
        Key key{};
        const char* p = piece.data();
        std::size_t n = piece.size(), word = 0;
        for (; n >= 8; n -= 8, p += 8) key[word++] = load<std::uint64_t>(p);
        // A call of memcpy for the rest would cost more than all else here; overlapping loads need no loop.
        if (n >= 4)
            key[word] = load<std::uint32_t>(p) | std::uint64_t{load<std::uint32_t>(p + n - 4)} << (n - 4) * 8;
        else if (n > 0)
            key[word] = byte(p[0]) | byte(p[n / 2]) << n / 2 * 8 | byte(p[n - 1]) << (n - 1) * 8;
        key[key_words - 1] |= static_cast<std::uint64_t>(piece.size()) << 56;
        return key;
    }

    /// If the piece is known, writes its ids to `out`, which has room for max_ids, and returns how many; else 0.
    std::size_t find(const Key& key, std::int32_t* out) {
        Slot* set = &slots_[set_of(key)];
        if (!same(set[0].key, key)) {
            if (!same(set[1].key, key)) return 0;
            std::swap(set[0], set[1]);
        }
        std::memcpy(out, set[0].ids.data(), sizeof(set[0].ids));
        return static_cast<std::size_t>(set[0].count);
    }

    void insert(const Key& key, std::span<const std::int32_t> ids) {
        if (ids.empty() || ids.size() > max_ids) return;
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

    template <class T>
    static T load(const char* p) {
        T value;
        std::memcpy(&value, p, sizeof(T));
        return value;
    }
    static std::uint64_t byte(char c) { return static_cast<unsigned char>(c); }

    static bool same(const Key& a, const Key& b) {
        std::uint64_t difference = 0;
        for (int i = 0; i < key_words; ++i) difference |= a[i] ^ b[i];
        return difference == 0;
    }

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
