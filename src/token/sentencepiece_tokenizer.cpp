#include "token/sentencepiece_tokenizer.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "token/bpe_files.h"

namespace tera {

namespace {

class SentencePieceEncoder : public Encoder {
  public:
    explicit SentencePieceEncoder(const SentencePieceTokenizer& tokenizer)
        : tokenizer_(tokenizer), pieces_(tokenizer.core().make_encoder()) {
        for (const auto& special : tokenizer.specials()) begins_[static_cast<unsigned char>(special.text[0])] = true;
    }

    void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
        if (tokenizer_.flavour() == SentencePieceFlavour::llama2) ids.push_back(*tokenizer_.bos());
        if (!tokenizer_.specials().empty()) {
            for (std::size_t at = 0; at < text.size();) {
                const SentencePieceTokenizer::Special* special = special_at(text.substr(at));
                if (!special) {
                    ++at;
                    continue;
                }
                encode_plain(text.substr(0, at), ids);
                ids.push_back(special->id);
                text.remove_prefix(at + special->text.size());
                at = 0;
            }
        }
        encode_plain(text, ids);
    }

  private:
    /// The special token that the text begins with; of several the one that was added first.
    const SentencePieceTokenizer::Special* special_at(std::string_view text) const {
        if (!begins_[static_cast<unsigned char>(text[0])]) return nullptr;
        const PieceTrie& texts = tokenizer_.special_texts();
        std::int32_t best = -1;
        std::uint32_t node = PieceTrie::root;
        for (const char c : text) {
            node = texts.child(node, static_cast<unsigned char>(c));
            if (node == PieceTrie::none) break;
            const std::int32_t value = texts.value(node);
            if (value >= 0 && (best < 0 || value < best)) best = value;
        }
        return best < 0 ? nullptr : &tokenizer_.specials()[static_cast<std::size_t>(best)];
    }

    void encode_plain(std::string_view text, std::vector<std::int32_t>& ids) {
        tokenizer_.core().normalizer().normalize(text, normalized_);
        pieces_->encode(normalized_, ids);
        if (normalized_.capacity() > large_text) normalized_ = {};
    }

    static constexpr std::size_t large_text = 1 << 22;

    const SentencePieceTokenizer& tokenizer_;
    std::unique_ptr<PieceEncoder> pieces_;
    std::array<bool, 256> begins_{};
    std::string normalized_;
};

std::optional<std::int32_t> known(std::int32_t id) { return id < 0 ? std::nullopt : std::optional(id); }

}  // namespace

SentencePieceTokenizer::SentencePieceTokenizer(std::string bytes, const std::string& file, SentencePieceFlavour flavour,
                                               std::int64_t extra_ids)
    : bytes_(std::move(bytes)), core_(parse_sentencepiece_model(bytes_, file), file), flavour_(flavour) {
    const SentencePieceModel& model = core_.model();
    if (flavour == SentencePieceFlavour::megatron) {
        add_specials(extra_ids);
        return;
    }
    if (extra_ids != 0)
        usage_error("--vocab-extra-ids: ", name(), " has no extra ids; use SentencePieceTokenizer or leave it out");
    bos_ = known(model.bos_id());
    eos_ = known(model.eos_id());
    if (flavour == SentencePieceFlavour::gpt) pad_ = known(model.pad_id());
    if (!eos_) usage_error(file, ": has no control piece ", model.eos_piece, ", which marks the end of a document");
    if (flavour == SentencePieceFlavour::llama2 && !bos_)
        usage_error(file, ": has no control piece ", model.bos_piece, ", which Llama2Tokenizer puts before every text");
    eod_ = *eos_;
}

std::string SentencePieceTokenizer::name() const {
    switch (flavour_) {
        case SentencePieceFlavour::megatron:
            return "SentencePieceTokenizer";
        case SentencePieceFlavour::gpt:
            return "GPTSentencePieceTokenizer";
        case SentencePieceFlavour::llama2:
            return "Llama2Tokenizer";
    }
    return "";
}

/// Id of a piece, or of a new entry behind them; the text counts as special from now on.
std::int32_t SentencePieceTokenizer::add_special(const std::string& text) {
    for (const Special& special : specials_)
        if (special.text == text) return special.id;
    const SentencePieceModel& model = core_.model();
    std::int32_t id = model.id_of(text);
    if (model.piece(id).text != text) {
        id = static_cast<std::int32_t>(vocab_size());
        added_.push_back(text);
    }
    specials_.push_back({text, id});
    return id;
}

void SentencePieceTokenizer::add_specials(std::int64_t extra_ids) {
    const SentencePieceModel& model = core_.model();
    cls_ = add_special("<CLS>");
    sep_ = add_special("<SEP>");
    eod_ = add_special("<EOD>");
    mask_ = add_special("<MASK>");
    pad_ = add_special(model.pad_id() < 0 ? "<PAD>" : model.pad_piece);
    bos_ = add_special(model.bos_id() < 0 ? "<BOS>" : model.bos_piece);
    eos_ = add_special(model.eos_id() < 0 ? "<EOS>" : model.eos_piece);
    for (std::int64_t i = 0; i < extra_ids; ++i) sentinels_.push_back(add_special(cat("<extra_id_", i, ">")));
    std::vector<std::pair<std::string_view, std::int32_t>> texts;
    for (const Special& special : specials_) texts.emplace_back(special.text, static_cast<std::int32_t>(texts.size()));
    special_texts_ = PieceTrie(std::move(texts));
}

std::unique_ptr<Encoder> SentencePieceTokenizer::make_encoder() const {
    return std::make_unique<SentencePieceEncoder>(*this);
}

std::string SentencePieceTokenizer::decode(std::span<const std::int32_t> ids) const {
    for (const std::int32_t id : ids) {
        if (id < 0 || id >= vocab_size())
            usage_error("token id ", id, " is outside the vocabulary of ", vocab_size(), " entries");
    }
    std::string text;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ids.size() && !specials_.empty(); ++i) {
        const auto special =
            std::find_if(specials_.begin(), specials_.end(), [&](const Special& s) { return s.id == ids[i]; });
        if (special == specials_.end()) continue;
        text += core_.decode(ids.subspan(begin, i - begin)) + " " + special->text + " ";
        begin = i + 1;
    }
    return text + core_.decode(ids.subspan(begin));
}

std::unique_ptr<Tokenizer> load_sentencepiece(const std::string& path, SentencePieceFlavour flavour,
                                              std::int64_t extra_ids) {
    return std::make_unique<SentencePieceTokenizer>(read_token_file(path), path, flavour, extra_ids);
}

}  // namespace tera
