// Remembers the ids of pieces of text, for encoders that meet the same words again and again.
//
// Sets of two slots, which share a cache line; a new piece takes the first and pushes the other out of the second. A
// piece of up to 15 bytes is its own key, so that equal keys are equal pieces and no bytes need to be compared; of a
// longer one the key is a hash, and its bytes are kept aside together with its ids. So are ids that do not fit a slot.
// The table grows as it fills, to a limit; when the space aside is full, all is forgotten.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tera {

/// Of 16 bytes in two words, those that belong to a piece of each length.
struct PieceMasks {
    std::array<std::uint64_t, 16> low{}, high{};
    constexpr PieceMasks() {
        for (std::size_t size = 0; size < 16; ++size) {
            low[size] = size >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * size) - 1;
            high[size] = size <= 8 ? 0 : (std::uint64_t{1} << 8 * (size - 8)) - 1;
        }
    }
};
inline constexpr PieceMasks piece_masks;

class PieceTable {
  public:
    static constexpr std::size_t most_short = 15;   // bytes of a piece that is its own key
    static constexpr std::size_t most_bytes = 255;  // longer pieces are not kept
    static constexpr std::size_t most_inline = 3;   // ids in a slot

    struct Key {
        std::uint64_t low = 0, high = 0;  // a real key has a top byte that is not 0
        bool operator==(const Key& other) const { return ((low ^ other.low) | (high ^ other.high)) == 0; }
        bool is_long() const { return high >> 63 != 0; }
        std::uint64_t hash() const;
    };
    struct Slot {
        Key key;
        std::array<std::int32_t, most_inline> ids{};  // or ids[0]: where they are aside
        std::int32_t count = 0;
    };

    PieceTable();

    /// The key of 1 to most_short bytes; 16 can be read.
    static Key short_key(const char* p, std::size_t size) {
        std::uint64_t low, high;
        std::memcpy(&low, p, 8);
        std::memcpy(&high, p + 8, 8);
        return {low & piece_masks.low[size], (high & piece_masks.high[size]) | static_cast<std::uint64_t>(size) << 56};
    }
    /// The key of a piece of 1 to most_bytes.
    static Key key_of(std::string_view piece);

    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[set_of(hash)]); }
    /// The slot of a piece, or null. `p` are its bytes.
    const Slot* find(const Key& key, std::uint64_t hash, const char* p) const {
        const Slot* set = &slots_[set_of(hash)];
        const Slot* slot = set[0].key == key ? set : set + 1;
        if (!(slot->key == key)) return nullptr;
        if (key.is_long()) return find_long(set, key, p);
        return slot;
    }
    std::span<const std::int32_t> ids(const Slot& slot) const {
        const auto count = static_cast<std::size_t>(slot.count);
        if (count <= most_inline && !slot.key.is_long()) return std::span(slot.ids).first(count);
        return {ids_aside(slot), count};
    }
    /// The ids of a slot that has more than most_inline, or a long piece. They can be read in whole steps.
    const std::int32_t* ids_aside(const Slot& slot) const {
        const std::size_t bytes = slot.key.is_long() ? words_of(slot.key.high & 0xFF) : 0;
        return aside_.data() + static_cast<std::size_t>(slot.ids[0]) + bytes;
    }
    static constexpr std::size_t aside_step = 8;

    /// Keeps a piece that find() does not find, with at least one id.
    void insert(const Key& key, std::string_view piece, std::span<const std::int32_t> ids);

  private:
    struct Free {
        void operator()(Slot* slots) const;
    };
    static constexpr int first_log2 = 12, last_log2 = 18;            // sets
    static constexpr std::size_t most_aside = std::size_t{1} << 21;  // words of 4 bytes
    static std::size_t words_of(std::size_t bytes) { return (bytes + 3) / 4; }
    std::size_t set_of(std::uint64_t hash) const { return static_cast<std::size_t>(hash >> shift_) * 2; }
    const Slot* find_long(const Slot* set, const Key& key, const char* p) const;
    void allocate(int log2_sets);
    void grow();
    void clear();
    void put(const Slot& slot);

    std::unique_ptr<Slot[], Free> slots_;
    int shift_ = 0;
    std::size_t used_ = 0;             // slots filled since the table has its size
    std::vector<std::int32_t> aside_;  // bytes of long pieces, padded to words, then the ids; a step of zeros behind
};

inline std::uint64_t PieceTable::Key::hash() const {
    const auto product = static_cast<unsigned __int128>(low ^ 0x9E3779B97F4A7C15) * (high ^ 0xD6E8FEB86659FD93);
    return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

}  // namespace tera
