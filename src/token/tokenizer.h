// Text to token ids and back, whatever the kind of tokenizer.
//
// A Tokenizer is immutable after loading and may be shared by all threads. The working memory of encoding (piece cache,
// merge scratch) lives in an Encoder, one per thread; Tokenizer::encode borrows one from a pool.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tera {

/// The tokenizer flags, by their command-line names with underscores.
struct TokenizerConfig {
    std::string tokenizer_type;   // as --tokenizer-type: GPT2BPETokenizer, NullTokenizer, ...
    std::string vocab_file;       // vocab.json or vocab.txt
    std::string merge_file;       // merges.txt
    std::string tokenizer_model;  // SentencePiece model, tiktoken JSON, tokenizer.json or its folder
    std::int64_t vocab_size = 0;  // NullTokenizer, TikTokenizer; 0: not given
    std::int64_t vocab_extra_ids = 0;
    std::string tiktoken_pattern;  // v1 or v2; empty: v1
    std::int64_t tiktoken_num_special_tokens = 1000;
    std::vector<std::string> tiktoken_special_tokens;  // empty: <unk> <s> </s>
    bool hf_include_special_tokens = true;             // false: the post-processor adds nothing
    bool sentencepiece_legacy = false;                 // special tokens are found inside text
};

/// A file that makes up the tokenizer as Hugging Face programs load it.
struct TokenizerFile {
    std::string name;  // e.g. "vocab.json", no folder
    std::string bytes;
};

/// Encodes for one thread at a time; must not outlive its Tokenizer.
class Encoder {
  public:
    virtual ~Encoder() = default;
    /// Appends the ids of `text`.
    virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) = 0;
};

class Tokenizer {
  public:
    Tokenizer() = default;
    Tokenizer(const Tokenizer&) = delete;
    Tokenizer& operator=(const Tokenizer&) = delete;
    virtual ~Tokenizer() = default;

    virtual std::unique_ptr<Encoder> make_encoder() const = 0;
    /// Appends the ids of `text`; safe from any number of threads.
    void encode(std::string_view text, std::vector<std::int32_t>& ids) const;
    /// The bytes the ids stand for. Ids may cut a character in two, so this need not be valid UTF-8 (see
    /// replace_invalid_utf8 in token/utf8.h). An id outside 0..vocab_size-1 is a UsageError.
    virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

    virtual std::int64_t vocab_size() const = 0;  // before padding
    virtual std::int32_t eod() const = 0;         // end of document
    // Ids that some tokenizers have.
    virtual std::optional<std::int32_t> pad() const { return std::nullopt; }
    virtual std::optional<std::int32_t> bos() const { return std::nullopt; }   // begin of sequence
    virtual std::optional<std::int32_t> eos() const { return std::nullopt; }   // end of sequence
    virtual std::optional<std::int32_t> cls() const { return std::nullopt; }   // BERT: before the first sentence
    virtual std::optional<std::int32_t> sep() const { return std::nullopt; }   // BERT: behind each sentence
    virtual std::optional<std::int32_t> mask() const { return std::nullopt; }  // BERT: in place of a masked token
    /// T5: <extra_id_0>, <extra_id_1>, ... as many as --vocab-extra-ids.
    virtual std::vector<std::int32_t> sentinels() const { return {}; }
    /// What encode() puts before and behind the ids of every text, as far as decode() shows it.
    virtual std::vector<std::int32_t> ids_before() const { return {}; }
    virtual std::vector<std::int32_t> ids_behind() const { return {}; }
    virtual std::string name() const = 0;  // the --tokenizer-type
    /// What to put beside a checkpoint so that Hugging Face programs find the tokenizer; empty if there is no such
    /// form.
    virtual std::vector<TokenizerFile> files() const { return {}; }
    /// Tells tokenizers of the same type apart that give other ids.
    virtual std::uint32_t checksum() const;

  private:
    mutable std::mutex pool_mutex_;
    mutable std::vector<std::unique_ptr<Encoder>> pool_;
};

/// The types that make_tokenizer knows, for help texts and errors.
std::string tokenizer_types_text();

/// Loads the tokenizer that the flags name. UsageError for a type that is unknown or not built, for missing flags and
/// for unreadable or invalid files.
std::unique_ptr<Tokenizer> make_tokenizer(const TokenizerConfig& config);

}  // namespace tera
