#include "token/hf_tokenizer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <unordered_map>

#include "core/error.h"
#include "token/added_tokens.h"
#include "token/decoder.h"
#include "token/hf_added_vocab.h"
#include "token/hf_model.h"
#include "token/hf_tokenizer_config.h"
#include "token/normalizer_json.h"
#include "token/post_processor.h"
#include "token/utf8.h"

namespace tera {

namespace {

class HuggingFaceTokenizer : public Tokenizer {
  public:
    HuggingFaceTokenizer(std::string bytes, const std::string& file, HfTokenizerConfig config);

    std::unique_ptr<Encoder> make_encoder() const override;
    std::string decode(std::span<const std::int32_t> ids) const override;
    std::int64_t vocab_size() const override { return size_; }
    std::int32_t eod() const override { return eod_; }
    std::optional<std::int32_t> pad() const override { return id_of(config_.pad); }
    std::optional<std::int32_t> bos() const override { return id_of(config_.bos); }
    std::optional<std::int32_t> eos() const override { return id_of(config_.eos); }
    std::optional<std::int32_t> cls() const override { return id_of(config_.cls); }
    std::optional<std::int32_t> sep() const override { return id_of(config_.sep); }
    std::optional<std::int32_t> mask() const override { return id_of(config_.mask); }
    std::vector<std::int32_t> sentinels() const override;
    std::vector<std::int32_t> ids_before() const override { return post_processor_.before; }
    std::vector<std::int32_t> ids_behind() const override { return post_processor_.after; }
    std::string name() const override { return "HuggingFaceTokenizer"; }
    std::vector<TokenizerFile> files() const override { return config_.files; }
    std::uint32_t checksum() const override {
        return config_.adds_special_tokens ? Tokenizer::checksum() : ~Tokenizer::checksum();
    }
    /// One line each, to be shown.
    const std::vector<std::string>& warnings() const { return warnings_; }

  private:
    friend class HfEncoder;

    std::optional<std::int32_t> id_of(const std::string& token) const {
        return token.empty() ? std::nullopt : vocab_.id_of(token);
    }
    void add_tokens(const TokenizerJson& json);
    void list_tokens(const TokenizerJson& json);
    void choose_post_processor(const TokenizerJson& json);
    void choose_eod(const std::string& file);

    HfTokenizerConfig config_;
    Normalizer normalizer_;
    PreTokenizer pre_tokenizer_;
    std::unique_ptr<HfTokenModel> model_;
    HfAddedVocab vocab_;
    PostProcessor post_processor_;
    TokenDecoder decoder_;
    std::vector<std::string> token_of_id_;  // in the form the decoder takes, or decoded if it goes token by token
    std::int64_t size_ = 0;
    std::int32_t eod_ = -1;
    std::vector<std::string> warnings_;
};

class HfEncoder : public Encoder {
  public:
    explicit HfEncoder(const HuggingFaceTokenizer& tokenizer) : tokenizer_(tokenizer) {
        const auto pattern = tokenizer.pre_tokenizer_.only_pattern();
        if (pattern) text_encoder_ = tokenizer.model_->make_text_encoder(*pattern);
        if (text_encoder_) return;
        piece_encoder_ = tokenizer.model_->make_encoder();
        splitter_ = std::make_unique<PieceSplitter>(tokenizer.pre_tokenizer_, *piece_encoder_);
    }

    void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
        const auto& [before, after] = tokenizer_.post_processor_;
        if (find_invalid_utf8(text) != std::string_view::npos) {
            valid_ = replace_invalid_utf8(text);
            text = valid_;
        }
        ids.insert(ids.end(), before.begin(), before.end());
        const bool needs_head = tokenizer_.pre_tokenizer_.needs_head() && !text.empty();
        const std::size_t first_char = needs_head ? decode_utf8(text.data(), text.data() + text.size()).bytes : 0;
        const AddedTokenFinder& finder = tokenizer_.vocab_.raw();
        if (finder.empty()) {
            encode_raw({text, first_char}, ids);
        } else {
            finder.split(text, raw_splits_);
            for (const AddedSplit& split : raw_splits_) {
                if (split.id >= 0)
                    ids.push_back(split.id);
                else
                    encode_raw({text.substr(split.begin, split.end - split.begin), split.begin == 0 ? first_char : 0},
                               ids);
            }
        }
        ids.insert(ids.end(), after.begin(), after.end());
    }

  private:
    void encode_raw(NormalView text, std::vector<std::int32_t>& ids) {
        text = tokenizer_.normalizer_.apply(text, scratch_);
        const AddedTokenFinder& finder = tokenizer_.vocab_.normalized();
        if (finder.empty()) return encode_plain(text, ids);
        finder.split(text.text, splits_);
        for (const AddedSplit& split : splits_) {
            if (split.id >= 0)
                ids.push_back(split.id);
            else
                encode_plain({text.text.substr(split.begin, split.end - split.begin),
                              text.head > split.begin ? text.head - split.begin : 0},
                             ids);
        }
    }
    void encode_plain(NormalView text, std::vector<std::int32_t>& ids) {
        if (text_encoder_)
            text_encoder_->encode(text.text, ids);
        else
            splitter_->encode(text, ids);
    }

    const HuggingFaceTokenizer& tokenizer_;
    std::unique_ptr<Encoder> text_encoder_;
    std::unique_ptr<HfPieceEncoder> piece_encoder_;
    std::unique_ptr<PieceSplitter> splitter_;
    std::string valid_;
    Normalizer::Scratch scratch_;
    std::vector<AddedSplit> raw_splits_, splits_;
};

HuggingFaceTokenizer::HuggingFaceTokenizer(std::string bytes, const std::string& file, HfTokenizerConfig config)
    : config_(std::move(config)) {
    const TokenizerJson json = parse_tokenizer_json(bytes, file);
    if (!json.normalizer.is_null()) normalizer_ = make_normalizer(json.part(json.normalizer, "normalizer"));
    if (!json.pre_tokenizer.is_null()) pre_tokenizer_ = PreTokenizer(json.part(json.pre_tokenizer, "pre_tokenizer"));
    if (!json.decoder.is_null()) decoder_ = TokenDecoder(json.part(json.decoder, "decoder"));
    model_ = make_hf_model(json, pre_tokenizer_.is_byte_level());
    add_tokens(json);
    list_tokens(json);
    choose_post_processor(json);
    choose_eod(file);
    config_.files.insert(config_.files.begin(), {"tokenizer.json", std::move(bytes)});
}

void HuggingFaceTokenizer::add_tokens(const TokenizerJson& json) {
    vocab_ = HfAddedVocab(json);
    for (const AddedToken& token : json.added_tokens) {
        const std::int32_t id = vocab_.add(token);
        if (token.id >= 0 && id >= 0 && id != token.id)
            warnings_.push_back(cat(json.file, ": added token \"", token.content, "\" says id ", token.id,
                                    " but is given ", id, ", as Hugging Face does"));
    }
    for (const AddedToken& token : config_.listed_tokens) vocab_.add(token);
    for (const AddedToken& token : config_.special_tokens)
        if (!vocab_.is_added(token.content)) vocab_.add(token);
    vocab_.build_finders(normalizer_, config_.split_special_tokens);
}

void HuggingFaceTokenizer::list_tokens(const TokenizerJson& json) {
    const auto put = [this](std::int32_t id, const std::string& token) {
        const auto at = static_cast<std::size_t>(id);
        if (token_of_id_.size() <= at) token_of_id_.resize(at + 1);
        token_of_id_[at] = token;
    };
    for (const auto& [token, id] : json.vocab) put(id, token);
    for (const auto& [token, pattern] : vocab_.tokens_and_patterns()) put(token.id, pattern);
    // Ids with gaps between them count to the largest, so that every id is below the size.
    size_ = static_cast<std::int64_t>(token_of_id_.size());
    if (!decoder_.is_by_token()) return;
    for (std::string& token : token_of_id_) token = decoder_.decode({token});
}

void HuggingFaceTokenizer::choose_post_processor(const TokenizerJson& json) {
    if (!json.post_processor.is_null())
        post_processor_ = make_post_processor(json.part(json.post_processor, "post_processor"));
    for (const auto* ids : {&post_processor_.before, &post_processor_.after})
        for (const std::int32_t id : *ids)
            if (id >= size_) usage_error(json.file, ": post_processor: id ", id, " is not in the vocabulary");
    if (!config_.adds_special_tokens) post_processor_ = {};
}

/// The end of a document: eos_token, or what stands for it in models of this class, or [SEP].
void HuggingFaceTokenizer::choose_eod(const std::string& file) {
    constexpr std::pair<std::string_view, const char*> defaults[] = {
        {"GPT2", "<|endoftext|>"}, {"Qwen", "<|endoftext|>"}, {"Llama", "</s>"}, {"T5", "</s>"}, {"Roberta", "</s>"}};
    if (config_.eos.empty())
        for (const auto& [name, token] : defaults)
            if (config_.tokenizer_class.starts_with(name) && vocab_.id_of(token)) config_.eos = token;
    auto id = id_of(config_.eos);
    if (!id) id = config_.eos_id;
    if (!id) id = id_of(config_.sep);
    if (!id && config_.tokenizer_class.empty()) {
        // A lone file: one of the usual names, if there is just one.
        int found = 0;
        for (const char* token : {"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>", "[SEP]"}) {
            if (!vocab_.is_special(token)) continue;
            id = vocab_.id_of(token);
            ++found;
        }
        if (found != 1) id.reset();
    }
    if (!id)
        usage_error(file,
                    ": nothing says which token ends a document; write {\"eos_token\": \"...\"} into a "
                    "tokenizer_config.json beside it");
    if (*id >= size_) usage_error(file, ": the end of a document, id ", *id, ", is not in the vocabulary");
    eod_ = *id;
}

std::unique_ptr<Encoder> HuggingFaceTokenizer::make_encoder() const { return std::make_unique<HfEncoder>(*this); }

std::vector<std::int32_t> HuggingFaceTokenizer::sentinels() const {
    std::vector<std::int32_t> ids;
    while (const auto id = vocab_.id_of(cat("<extra_id_", ids.size(), ">"))) ids.push_back(*id);
    return ids;
}

std::string HuggingFaceTokenizer::decode(std::span<const std::int32_t> ids) const {
    std::string text;
    std::vector<std::string> tokens;
    for (const std::int32_t id : ids) {
        if (id < 0 || id >= size_) usage_error("token id ", id, " is outside the vocabulary of ", size_, " entries");
        const std::string& token = token_of_id_[static_cast<std::size_t>(id)];
        if (decoder_.is_by_token())
            text += token;
        else
            tokens.push_back(token);
    }
    return decoder_.is_by_token() ? text : decoder_.decode(std::move(tokens));
}

}  // namespace

std::unique_ptr<Tokenizer> load_hugging_face_tokenizer(const std::string& path, bool add_special_tokens) {
    namespace fs = std::filesystem;
    const bool is_folder = fs::is_directory(path);
    const fs::path file = is_folder ? fs::path(path) / "tokenizer.json" : fs::path(path);
    if (!fs::exists(file))
        usage_error(file.string(),
                    ": there is no such file; --tokenizer-model must be a tokenizer.json or its folder"
                    " (names on the Hugging Face hub are not looked up)");
    std::string bytes = read_text_file(file.string(), std::uint64_t{512} << 20);
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    HfTokenizerConfig config = read_hf_tokenizer_config(folder.string());
    config.adds_special_tokens = add_special_tokens;
    auto tokenizer = std::make_unique<HuggingFaceTokenizer>(std::move(bytes), file.string(), std::move(config));
    for (const std::string& line : tokenizer->warnings()) std::fprintf(stderr, "WARNING: %s\n", one_line(line).c_str());
    return tokenizer;
}

std::unique_ptr<Tokenizer> parse_hugging_face_tokenizer(std::string bytes, const std::string& file) {
    return std::make_unique<HuggingFaceTokenizer>(std::move(bytes), file, HfTokenizerConfig());
}

}  // namespace tera
