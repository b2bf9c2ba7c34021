#include "token/bpe_encoder.h"

namespace tera {

void BpeEncoder::encode(std::string_view text, std::vector<std::int32_t>& ids) {
    used_ = 0;
    const char* end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
        const char* stop = piece_end(pattern_, p, end);
        add_piece({p, static_cast<std::size_t>(stop - p)}, ids);
        p = stop;
    }
    flush(ids);
}

void BpeEncoder::encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) {
    used_ = 0;
    if (!piece.empty()) add_piece(piece, ids);
    flush(ids);
}

void BpeEncoder::add_piece(std::string_view piece, std::vector<std::int32_t>& ids) {
    if (piece.size() <= ShortCache::max_bytes) {
        add_cached(short_cache_, piece, ids);
    } else if (piece.size() <= LongCache::max_bytes) {
        add_cached(long_cache_, piece, ids);
    } else {
        flush(ids);
        merger_.encode(piece, ids);
    }
}

template <class Cache>
void BpeEncoder::add_cached(Cache& cache, std::string_view piece, std::vector<std::int32_t>& ids) {
    if (used_ + Cache::most_ids > ready_.size()) flush(ids);
    const auto key = Cache::key_of(piece);
    if (const std::size_t count = cache.find(key, ready_.data() + used_)) {
        used_ += count;
        return;
    }
    flush(ids);
    const std::size_t first = ids.size();
    merger_.encode(piece, ids);
    cache.insert(key, std::span(ids).subspan(first));
}

void BpeEncoder::flush(std::vector<std::int32_t>& ids) {
    ids.insert(ids.end(), ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ = 0;
}

}  // namespace tera
