#include "token/gpt2_bpe.h"

#include <algorithm>
#include <cstdio>
#include <unordered_set>

#include "core/error.h"
#include "token/bpe_encoder.h"
#include "token/byte_level.h"

namespace tera {

Gpt2BpeTokenizer::Gpt2BpeTokenizer(BpeVocab vocab, BpeMerges merges, const std::string& file)
    : vocab_(std::move(vocab)), merges_(std::move(merges)), model_(vocab_, merges_) {
    const auto found = std::find(vocab_.token_of_id.begin(), vocab_.token_of_id.end(), end_of_text);
    if (found == vocab_.token_of_id.end())
        usage_error(file, ": has no token ", end_of_text, ", which marks the end of a document");
    eod_ = static_cast<std::int32_t>(found - vocab_.token_of_id.begin());
    bytes_of_id_.reserve(vocab_.token_of_id.size());
    for (const std::string& token : vocab_.token_of_id) bytes_of_id_.push_back(from_printable(token));
}

std::unique_ptr<Encoder> Gpt2BpeTokenizer::make_encoder() const {
    return std::make_unique<BpeEncoder>(model_, PretokenPattern::gpt2);
}

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

namespace {

/// Merges whose tokens the vocabulary lacks turn text into id 0. A few may be meant; many are the wrong file.
void check_they_belong_together(const BpeVocab& vocab, const BpeMerges& merges, const std::string& vocab_file,
                                const std::string& merge_file) {
    const std::unordered_set<std::string_view> known(vocab.token_of_id.begin(), vocab.token_of_id.end());
    const auto lost =
        static_cast<std::size_t>(std::count_if(merges.pairs.begin(), merges.pairs.end(), [&](const auto& pair) {
            return known.count(pair.first + pair.second) == 0;
        }));
    if (lost == 0) return;
    const std::string what =
        cat(lost, " of ", merges.pairs.size(), " merges in ", merge_file, " make tokens that are not in ", vocab_file);
    if (2 * lost >= merges.pairs.size()) usage_error(what, "; give files that belong together");
    std::fprintf(stderr, "WARNING: %s; such text becomes id 0\n", what.c_str());
}

}  // namespace

std::unique_ptr<Tokenizer> load_gpt2_bpe(const std::string& vocab_file, const std::string& merge_file) {
    BpeVocab vocab = parse_vocab_json(read_token_file(vocab_file), vocab_file);
    BpeMerges merges = parse_merges(read_token_file(merge_file), merge_file);
    for (const std::string& warning : merges.warnings) std::fprintf(stderr, "WARNING: %s\n", warning.c_str());
    check_they_belong_together(vocab, merges, vocab_file, merge_file);
    return std::make_unique<Gpt2BpeTokenizer>(std::move(vocab), std::move(merges), vocab_file);
}

}  // namespace tera
