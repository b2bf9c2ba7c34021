#include "token/hf_bpe.h"

#include <algorithm>

#include "token/unigram.h"
#include "token/utf8.h"

namespace tera {

namespace {

constexpr std::string_view mark = "\u2581";

}  // namespace

HfBpeModel::HfBpeModel(Vocab vocab, const std::vector<std::pair<std::string, std::string>>& merges,
                       HfBpeOptions options)
    : vocab_(std::move(vocab)), options_(options) {
    std::vector<std::uint32_t> made;
    std::vector<MergeRules::Pair> pairs;
    const auto symbol_of = [this](const std::string& text) { return static_cast<std::uint32_t>(vocab_.at(text)); };
    for (const auto& [left, right] : merges) {
        pairs.push_back({symbol_of(left), symbol_of(right), static_cast<std::uint32_t>(made.size())});
        made.push_back(symbol_of(left + right));
    }
    std::size_t symbols = 0;
    for (const auto& [token, id] : vocab_) symbols = std::max(symbols, static_cast<std::size_t>(id) + 1);
    rules_ = MergeRules(std::move(made), {}, symbols, "the vocabulary");
    rules_.set_pairs(pairs);
    index_chars();
    find_safe_cuts(merges);
}

void HfBpeModel::index_chars() {
    block_of_.assign(0x110000 / 256, 0);
    char_ids_.assign(256, -1);  // block 0: nothing is known
    byte_ids_.resize(256);
    for (unsigned byte = 0; byte < 256; ++byte)
        byte_ids_[byte] = id_of(byte_fallback_token(static_cast<unsigned char>(byte)));
    for (const auto& [token, id] : vocab_) {
        if (token.empty()) continue;
        const CodePoint c = decode_utf8(token.data(), token.data() + token.size());
        if (c.bytes != token.size() || c.value == CodePoint::invalid) continue;
        std::uint16_t& block = block_of_[c.value >> 8];
        if (block == 0) {
            block = static_cast<std::uint16_t>(char_ids_.size() / 256);
            char_ids_.resize(char_ids_.size() + 256, -1);
        }
        char_ids_[block * 256u + (c.value & 255)] = id;
    }
}

/// A merge that crosses the border between a character y and a mark makes a token that holds y and the mark side by
/// side, as long as every symbol is the text it stands for. Symbols that are not (bytes, unknown) must then not merge,
/// and nothing may vanish, which would make others neighbours.
void HfBpeModel::find_safe_cuts(const std::vector<std::pair<std::string, std::string>>& merges) {
    const bool has_all_bytes = std::all_of(byte_ids_.begin(), byte_ids_.end(), [](std::int32_t id) { return id >= 0; });
    may_cut_ = id_of(std::string(mark)) >= 0 && (options_.unknown >= 0 || (options_.byte_fallback && has_all_bytes));
    std::unordered_set<std::int32_t> no_text(byte_ids_.begin(), byte_ids_.end());
    no_text.insert(options_.unknown);
    for (const auto& [left, right] : merges) {
        if (no_text.count(vocab_.at(left)) + no_text.count(vocab_.at(right)) > 0) may_cut_ = false;
        const std::string whole = left + right;
        for (std::size_t at = whole.find(mark, 1); at != std::string::npos; at = whole.find(mark, at + 1)) {
            std::size_t before = at - 1;
            while (before > 0 && (whole[before] & 0xC0) == 0x80) --before;
            joins_mark_.insert(decode_utf8(whole.data() + before, whole.data() + whole.size()).value);
        }
    }
}

std::size_t HfBpeModel::word_end(std::string_view text, std::size_t from) const {
    if (!may_cut_) return text.size();
    for (std::size_t at = text.find(mark, from + 1); at != std::string_view::npos; at = text.find(mark, at + 1)) {
        std::size_t before = at - 1;
        while (before > from && (text[before] & 0xC0) == 0x80) --before;
        const std::uint32_t c = decode_utf8(text.data() + before, text.data() + text.size()).value;
        if (joins_mark_.count(c) == 0) return at;
    }
    return text.size();
}

void HfBpeEncoder::encode(std::string_view piece, std::vector<std::int32_t>& ids) {
    if (model_.options().whole_piece_first) {
        const std::int32_t id = model_.id_of(std::string(piece));
        if (id >= 0) {
            ids.push_back(id);
            return;
        }
    }
    for (std::size_t begin = 0; begin < piece.size();) {
        const std::size_t end = model_.word_end(piece, begin);
        const std::string_view word = piece.substr(begin, end - begin);
        begin = end;
        cache_.append(word, ids, [&](std::vector<std::int32_t>& out) { encode_word(word, out); });
    }
}

void HfBpeEncoder::encode_word(std::string_view word, std::vector<std::int32_t>& ids) {
    load(word);
    merger_.merge(symbols_);
    ids.insert(ids.end(), symbols_.begin(), symbols_.end());
}

/// The characters' ids. An unknown one waits until the next known one; bytes go before it (as in the original).
void HfBpeEncoder::load(std::string_view word) {
    const HfBpeOptions& options = model_.options();
    symbols_.clear();
    bool waits = false;
    const auto add_waiting = [&] {
        if (waits) symbols_.push_back(static_cast<std::uint32_t>(options.unknown));
        waits = false;
    };
    for (std::size_t at = 0; at < word.size();) {
        const CodePoint c = decode_utf8(word.data() + at, word.data() + word.size());
        const std::string_view bytes = word.substr(at, c.bytes);
        at += c.bytes;
        const std::int32_t id = model_.id_of_char(c.value);
        const auto has_token = [this](char b) { return model_.id_of_byte(static_cast<unsigned char>(b)) >= 0; };
        if (id >= 0) {
            add_waiting();
            symbols_.push_back(static_cast<std::uint32_t>(id));
        } else if (options.byte_fallback && std::all_of(bytes.begin(), bytes.end(), has_token)) {
            for (const char b : bytes)
                symbols_.push_back(static_cast<std::uint32_t>(model_.id_of_byte(static_cast<unsigned char>(b))));
        } else if (options.unknown >= 0) {
            if (!options.fuse_unknown) add_waiting();
            waits = true;
        }
    }
    add_waiting();
}

}  // namespace tera
