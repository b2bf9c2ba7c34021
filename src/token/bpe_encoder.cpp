#include "token/bpe_encoder.h"

#include <algorithm>
#include <cstring>

namespace tera {

void BpeEncoder::encode(std::string_view text, std::vector<std::int32_t>& ids) {
    used_ = 0;
    const char* const text_end = text.data() + text.size();
    PieceScanner scanner(pattern_, text);
    const char* begin = scanner.position();
    while (const std::size_t found = scanner.next(ends_.data(), ends_.size())) {
        const char* const base = begin;
        for (std::size_t at = 0; at < found; at += batch) {
            const std::size_t count = std::min(batch, found - at);
            for (std::size_t i = 0; i < count; ++i) {
                const char* end = base + ends_[at + i];
                pending_[i].begin = begin;
                pending_[i].size = static_cast<std::size_t>(end - begin);
                prepare(pending_[i], text_end);
                begin = end;
            }
            for (std::size_t i = 0; i < count; ++i) add(pending_[i], ids);
        }
    }
    flush(ids);
}

void BpeEncoder::encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) {
    if (piece.empty()) return;
    used_ = 0;
    pending_[0].begin = piece.data();
    pending_[0].size = piece.size();
    prepare(pending_[0], piece.data() + piece.size());
    add(pending_[0], ids);
    flush(ids);
}

inline void BpeEncoder::prepare(Pending& piece, const char* text_end) const {
    if (piece.size <= PieceTable::most_short && text_end - piece.begin >= 16)
        piece.key = PieceTable::short_key(piece.begin, piece.size);
    else if (piece.size <= PieceTable::most_bytes)
        piece.key = PieceTable::key_of({piece.begin, piece.size});
    else
        return;
    piece.hash = piece.key.hash();
    table_.prefetch(piece.hash);
}

inline void BpeEncoder::add(const Pending& piece, std::vector<std::int32_t>& ids) {
    if (used_ + PieceTable::most_bytes + PieceTable::aside_step > ready_.size()) flush(ids);
    if (piece.size > PieceTable::most_bytes) return add_new(piece, ids);
    const PieceTable::Slot* slot = table_.find(piece.key, piece.hash, piece.begin);
    if (!slot) return add_new(piece, ids);
    const auto count = static_cast<std::size_t>(slot->count);
    if (count <= PieceTable::most_inline && !piece.key.is_long()) {
        std::memcpy(&ready_[used_], slot->ids.data(), sizeof slot->ids);
    } else {
        // Most have few; copied in steps of one size, they need no call.
        const std::int32_t* ids_aside = table_.ids_aside(*slot);
        for (std::size_t i = 0; i < count; i += PieceTable::aside_step)
            std::memcpy(&ready_[used_ + i], ids_aside + i, PieceTable::aside_step * sizeof(std::int32_t));
    }
    used_ += count;
}

void BpeEncoder::add_new(const Pending& piece, std::vector<std::int32_t>& ids) {
    flush(ids);
    const std::size_t first = ids.size();
    merger_.encode({piece.begin, piece.size}, ids);
    if (piece.size <= PieceTable::most_bytes)
        table_.insert(piece.key, {piece.begin, piece.size}, std::span(ids).subspan(first));
}

void BpeEncoder::flush(std::vector<std::int32_t>& ids) {
    ids.insert(ids.end(), ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ = 0;
}

}  // namespace tera
