#include "token/gpt2_bpe.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/error.h"
#include "token/byte_level.h"
#include "token/piece_cache.h"
#include "token/pretokenize.h"

namespace tera {

namespace {

class Gpt2BpeEncoder : public Encoder {
  public:
    explicit Gpt2BpeEncoder(const BpeModel& model) : classes_(char_class_table()), merger_(model) {}

    void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
        used_ = 0;
        const char* end = text.data() + text.size();
        for (const char* p = text.data(); p < end;) {
            const char* stop = gpt2_piece_end(p, end, classes_);
            encode_piece({p, static_cast<std::size_t>(stop - p)}, ids);
            p = stop;
        }
        flush(ids);
    }

  private:
    void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids) {
        if (piece.size() <= ShortCache::max_bytes) {
            encode_cached(short_cache_, piece, ids);
        } else if (piece.size() <= LongCache::max_bytes) {
            encode_cached(long_cache_, piece, ids);
        } else {
            flush(ids);
            merger_.encode(piece, ids);
        }
    }

    template <class Cache>
    void encode_cached(Cache& cache, std::string_view piece, std::vector<std::int32_t>& ids) {
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

    void flush(std::vector<std::int32_t>& ids) {
        ids.insert(ids.end(), ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(used_));
        used_ = 0;
    }

    using ShortCache = PieceCache<2, 3, 15>;  // 2 MiB of 32-byte slots
    using LongCache = PieceCache<4, 7, 13>;   // 1 MiB of 64-byte slots

    const CharClassTable& classes_;
    BpeMerger merger_;
    ShortCache short_cache_;
    LongCache long_cache_;
    std::array<std::int32_t, 1024> ready_;  // ids found in the caches, on their way to the caller
    std::size_t used_ = 0;
};

}  // namespace

Gpt2BpeTokenizer::Gpt2BpeTokenizer(BpeVocab vocab, BpeMerges merges, const std::string& file)
    : vocab_(std::move(vocab)), merges_(std::move(merges)), model_(vocab_, merges_) {
    const auto found = std::find(vocab_.token_of_id.begin(), vocab_.token_of_id.end(), end_of_text);
    if (found == vocab_.token_of_id.end())
        usage_error(file, ": has no token ", end_of_text, ", which marks the end of a document");
    eod_ = static_cast<std::int32_t>(found - vocab_.token_of_id.begin());
    bytes_of_id_.reserve(vocab_.token_of_id.size());
    for (const std::string& token : vocab_.token_of_id) bytes_of_id_.push_back(from_printable(token));
}

std::unique_ptr<Encoder> Gpt2BpeTokenizer::make_encoder() const { return std::make_unique<Gpt2BpeEncoder>(model_); }

std::string Gpt2BpeTokenizer::decode(std::span<const std::int32_t> ids) const {
    std::string text;
    for (const std::int32_t id : ids) {
        if (id < 0 || id >= vocab_size())
            usage_error("token id ", id, " is outside the vocabulary of ", vocab_size(), " entries");
        text += bytes_of_id_[static_cast<std::size_t>(id)];
    }
    return text;
}

std::vector<TokenizerFile> Gpt2BpeTokenizer::files() const { return bpe_tokenizer_files(vocab_, merges_); }

std::unique_ptr<Tokenizer> load_gpt2_bpe(const std::string& vocab_file, const std::string& merge_file) {
    BpeVocab vocab = parse_vocab_json(read_token_file(vocab_file), vocab_file);
    BpeMerges merges = parse_merges(read_token_file(merge_file), merge_file);
    for (const std::string& warning : merges.warnings) std::fprintf(stderr, "WARNING: %s\n", warning.c_str());
    return std::make_unique<Gpt2BpeTokenizer>(std::move(vocab), std::move(merges), vocab_file);
}

}  // namespace tera
