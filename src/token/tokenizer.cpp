#include "token/tokenizer.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "io/crc32c.h"
#include "token/bert_tokenizer.h"
#include "token/gpt2_bpe.h"
#include "token/hf_tokenizer.h"
#include "token/null_tokenizer.h"
#include "token/sentencepiece_tokenizer.h"
#include "token/tiktoken_tokenizer.h"

namespace tera {

namespace {

using Config = TokenizerConfig;
using Made = std::unique_ptr<Tokenizer>;

void need(const std::string& value, const char* flag, const Config& config, const char* what) {
    if (value.empty()) usage_error(flag, " is missing: ", config.tokenizer_type, " needs ", what);
}

Made make_gpt2(const Config& config) {
    need(config.vocab_file, "--vocab-file", config, "a vocab.json");
    need(config.merge_file, "--merge-file", config, "a merges.txt");
    return load_gpt2_bpe(config.vocab_file, config.merge_file);
}

template <SentencePieceFlavour flavour>
Made make_sentencepiece(const Config& config) {
    need(config.tokenizer_model, "--tokenizer-model", config, "a SentencePiece model");
    return load_sentencepiece(config.tokenizer_model, flavour, config.vocab_extra_ids);
}

template <bool lower_case>
Made make_bert(const Config& config) {
    need(config.vocab_file, "--vocab-file", config, "a vocab.txt");
    return load_bert(config.vocab_file, {lower_case, config.vocab_extra_ids});
}

Made make_tiktoken(const Config& config) {
    need(config.tokenizer_model, "--tokenizer-model", config, "a vocabulary file, .json or .tiktoken");
    return load_tiktoken(config);
}

Made make_hugging_face(const Config& config) {
    need(config.tokenizer_model, "--tokenizer-model", config, "a tokenizer.json or the folder that holds it");
    return load_hugging_face_tokenizer(config.tokenizer_model, config.hf_include_special_tokens);
}

Made make_null(const Config& config) {
    if (config.vocab_size <= 0) usage_error("--vocab-size is missing: NullTokenizer needs the number of ids");
    return std::make_unique<NullTokenizer>(config.vocab_size);
}

struct Type {
    std::string_view name;
    Made (*make)(const Config&);
    bool has_extra_ids = false;
};
constexpr std::array types = {
    Type{"GPT2BPETokenizer", make_gpt2},
    Type{"SentencePieceTokenizer", make_sentencepiece<SentencePieceFlavour::megatron>, true},
    Type{"GPTSentencePieceTokenizer", make_sentencepiece<SentencePieceFlavour::gpt>},
    Type{"Llama2Tokenizer", make_sentencepiece<SentencePieceFlavour::llama2>},
    Type{"BertWordPieceLowerCase", make_bert<true>, true},
    Type{"BertWordPieceCase", make_bert<false>, true},
    Type{"HuggingFaceTokenizer", make_hugging_face},
    Type{"TikTokenizer", make_tiktoken},
    Type{"NullTokenizer", make_null},
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

std::uint32_t Tokenizer::checksum() const {
    std::uint32_t sum = 0;
    for (const TokenizerFile& file : files()) sum = crc32c(sum, std::as_bytes(std::span(file.bytes)));
    return sum;
}

std::string tokenizer_types_text() {
    std::string text;
    for (const Type& type : types) {
        if (!text.empty()) text += &type == &types.back() ? " or " : ", ";
        text += type.name;
    }
    return text;
}

std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerConfig& config) {
    if (config.tokenizer_type.empty()) usage_error("--tokenizer-type is missing: give ", tokenizer_types_text());
    const auto type =
        std::find_if(types.begin(), types.end(), [&](const Type& t) { return t.name == config.tokenizer_type; });
    if (type == types.end())
        usage_error("--tokenizer-type ", config.tokenizer_type, " is unknown; use ", tokenizer_types_text());
    if (config.vocab_extra_ids < 0 || config.vocab_extra_ids > 100000)
        usage_error("--vocab-extra-ids ", config.vocab_extra_ids, " is out of range; give 0 to 100000");
    if (config.vocab_extra_ids > 0 && !type->has_extra_ids)
        usage_error("--vocab-extra-ids: ", type->name,
                    " has no extra ids; leave it out, or use BertWordPieceLowerCase, "
                    "BertWordPieceCase or SentencePieceTokenizer");
    // BERT's own rules add nothing in any case; newer versions of Megatron need the flag for that.
    if (!config.hf_include_special_tokens && type->make != make_hugging_face && !type->name.starts_with("Bert"))
        usage_error("--tokenizer-hf-no-include-special-tokens: ", type->name,
                    " has no post-processor; leave it out, or use HuggingFaceTokenizer");
    if (config.sentencepiece_legacy && type->name != "SentencePieceTokenizer")
        usage_error("--tokenizer-sentencepiece-legacy: ", type->name,
                    " finds no special tokens inside text; leave it out, or use SentencePieceTokenizer");
    return type->make(config);
}

}  // namespace tera
