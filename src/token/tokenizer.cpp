#include "token/tokenizer.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "token/gpt2_bpe.h"
#include "token/null_tokenizer.h"

namespace tera {

namespace {

constexpr std::array<std::string_view, 7> not_built = {
    "BertWordPieceLowerCase",    "BertWordPieceCase", "HuggingFaceTokenizer", "SentencePieceTokenizer",
    "GPTSentencePieceTokenizer", "Llama2Tokenizer",   "TikTokenizer",
};

}  // namespace

void Tokenizer::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
    std::unique_ptr<Encoder> encoder;
    {
        std::lock_guard lock(pool_mutex_);
        if (!pool_.empty()) {
            encoder = std::move(pool_.back());
            pool_.pop_back();
        }
    }
    if (!encoder) encoder = make_encoder();
    encoder->encode(text, ids);
    std::lock_guard lock(pool_mutex_);
    pool_.push_back(std::move(encoder));
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerConfig& config) {
    const std::string& type = config.tokenizer_type;
    if (type.empty()) usage_error("--tokenizer-type is missing: give GPT2BPETokenizer or NullTokenizer");
    if (type == "GPT2BPETokenizer") {
        if (config.vocab_file.empty()) usage_error("--vocab-file is missing: GPT2BPETokenizer needs a vocab.json");
        if (config.merge_file.empty()) usage_error("--merge-file is missing: GPT2BPETokenizer needs a merges.txt");
        return load_gpt2_bpe(config.vocab_file, config.merge_file);
    }
    if (type == "NullTokenizer") {
        if (config.vocab_size <= 0) usage_error("--vocab-size is missing: NullTokenizer needs the number of ids");
        return std::make_unique<NullTokenizer>(config.vocab_size);
    }
    if (std::find(not_built.begin(), not_built.end(), type) != not_built.end())
        usage_error("--tokenizer-type ", type, " is not built yet; use GPT2BPETokenizer or NullTokenizer");
    usage_error("--tokenizer-type ", type, " is unknown; use GPT2BPETokenizer or NullTokenizer");
}

}  // namespace tera
