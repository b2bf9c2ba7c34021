#include "token/piece_table.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace tera {

namespace {

constexpr std::size_t huge_page = std::size_t{1} << 21;

}  // namespace

void PieceTable::Free::operator()(Slot* slots) const { std::free(slots); }

PieceTable::PieceTable() : aside_(aside_step) { allocate(first_log2); }

void PieceTable::allocate(int log2_sets) {
    const std::size_t bytes = (std::size_t{2} << log2_sets) * sizeof(Slot);
    void* memory = std::aligned_alloc(bytes >= huge_page ? huge_page : 64, bytes);
    if (!memory) throw std::bad_alloc();
    if (bytes >= huge_page) ::madvise(memory, bytes, MADV_HUGEPAGE);  // places are random: fewer address look-ups
    slots_.reset(new (memory) Slot[std::size_t{2} << log2_sets]());
    shift_ = 64 - log2_sets;
    used_ = 0;
}

PieceTable::Key PieceTable::key_of(std::string_view piece) {
    if (piece.size() <= most_short) {
        char bytes[16] = {};
        std::memcpy(bytes, piece.data(), piece.size());
        return short_key(bytes, piece.size());
    }
    Key hash{piece.size(), 0};
    const auto add = [&hash](const char* p) {
        std::uint64_t words[2];
        std::memcpy(words, p, sizeof words);
        hash = {Key{hash.low ^ words[0], hash.high ^ words[1]}.hash(), words[1]};
    };
    for (std::size_t at = 0; at + 16 < piece.size(); at += 16) add(piece.data() + at);
    add(piece.data() + piece.size() - 16);
    return {hash.hash(), std::uint64_t{1} << 63 | piece.size()};
}

const PieceTable::Slot* PieceTable::find_long(const Slot* set, const Key& key, const char* p) const {
    const std::size_t size = key.high & 0xFF;
    for (const Slot* slot = set; slot < set + 2; ++slot)
        if (slot->key == key && std::memcmp(&aside_[static_cast<std::size_t>(slot->ids[0])], p, size) == 0) return slot;
    return nullptr;
}

void PieceTable::insert(const Key& key, std::string_view piece, std::span<const std::int32_t> ids) {
    if (ids.empty()) return;
    const std::size_t bytes = key.is_long() ? piece.size() : 0;
    Slot slot{key, {}, static_cast<std::int32_t>(ids.size())};
    if (bytes == 0 && ids.size() <= most_inline) {
        std::copy(ids.begin(), ids.end(), slot.ids.begin());
    } else {
        if (aside_.size() + words_of(bytes) + ids.size() > most_aside) clear();
        const std::size_t at = aside_.size() - aside_step;
        slot.ids[0] = static_cast<std::int32_t>(at);
        aside_.resize(aside_.size() + words_of(bytes) + ids.size());
        if (bytes > 0) std::memcpy(&aside_[at], piece.data(), bytes);
        std::copy(ids.begin(), ids.end(), &aside_[at + words_of(bytes)]);
    }
    if (used_ >= std::size_t{1} << (64 - shift_) && 64 - shift_ < last_log2) grow();
    ++used_;
    put(slot);
}

void PieceTable::put(const Slot& slot) {
    Slot* set = &slots_[set_of(slot.key.hash())];
    set[1] = set[0];
    set[0] = slot;
}

void PieceTable::grow() {
    const std::size_t count = std::size_t{2} << (64 - shift_);
    const auto old = std::move(slots_);
    allocate(std::min(64 - shift_ + 2, last_log2));
    for (std::size_t i = count; i-- > 0;) {
        if (old[i].key.high == 0) continue;
        put(old[i]);
        ++used_;
    }
}

void PieceTable::clear() {
    aside_.assign(aside_step, 0);
    std::fill_n(slots_.get(), std::size_t{2} << (64 - shift_), Slot{});
    used_ = 0;
}

}  // namespace tera
