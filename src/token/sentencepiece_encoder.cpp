#include "token/sentencepiece_encoder.h"

#include "core/error.h"
#include "token/sentencepiece_bpe.h"
#include "token/sentencepiece_unigram.h"
#include "token/utf8.h"

namespace tera {

namespace {

/// Models whose pieces are whole words: each begins with its space.
class WordEncoder : public PieceEncoder {
  public:
    explicit WordEncoder(const SentencePieceModel& model) : model_(model), writer_(model) {}
    void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
        writer_.begin();
        while (!text.empty()) {
            const std::size_t end = std::min(text.find(sentencepiece_space, 1), text.size());
            writer_.add(model_.id_of(text.substr(0, end)), text.substr(0, end), ids);
            text.remove_prefix(end);
        }
    }

  private:
    const SentencePieceModel& model_;
    PieceWriter writer_;
};

/// Models whose pieces are characters, and user-defined strings.
class CharacterEncoder : public PieceEncoder {
  public:
    CharacterEncoder(const SentencePieceModel& model, const SentencePieceNormalizer& normalizer)
        : model_(model), normalizer_(normalizer), writer_(model) {}
    void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
        writer_.begin();
        while (!text.empty()) {
            const PieceTrie::Match match = normalizer_.user_defined().longest(text);
            const std::size_t length = match.value < 0 ? char_length(text) : match.length;
            writer_.add(model_.id_of(text.substr(0, length)), text.substr(0, length), ids);
            text.remove_prefix(length);
        }
    }

  private:
    const SentencePieceModel& model_;
    const SentencePieceNormalizer& normalizer_;
    PieceWriter writer_;
};

void append_piece(std::string_view piece, std::string& out) {
    for (std::size_t at = 0; at < piece.size();) {
        const std::size_t space = std::min(piece.find(sentencepiece_space, at), piece.size());
        out.append(piece, at, space - at);
        if (space < piece.size()) out += ' ';
        at = space + sentencepiece_space.size();
    }
}

void append_bytes(std::string_view bytes, std::string& out) {
    for (const char *p = bytes.data(), *end = p + bytes.size(); p < end;) {
        const CodePoint code = decode_utf8(p, end);
        if (code.value == CodePoint::invalid)
            append_utf8(out, 0xFFFD);
        else
            out.append(p, code.bytes);
        p += code.bytes;
    }
}

}  // namespace

PieceWriter::PieceWriter(const SentencePieceModel& model) : unk_id_(model.unk_id) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    for (unsigned byte = 0; model.byte_fallback && byte < 256; ++byte) {
        const char name[] = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
        byte_ids_.push_back(model.id_of({name, sizeof name}));
    }
}

SentencePieceCore::SentencePieceCore(SentencePieceModel model, const std::string& file)
    : model_(std::move(model)), normalizer_(model_, file) {
    if (model_.has_denormalizer) usage_error(file, ": has rules to apply when decoding, which are not supported");
    if (model_.kind == SentencePieceModel::Kind::bpe) merges_ = std::make_unique<PieceMerges>(model_, file);
    if (model_.kind == SentencePieceModel::Kind::unigram) unigram_ = std::make_unique<UnigramTable>(model_);
}

SentencePieceCore::~SentencePieceCore() = default;

std::unique_ptr<PieceEncoder> SentencePieceCore::make_encoder() const {
    if (merges_) return std::make_unique<PieceMerger>(model_, normalizer_, *merges_);
    if (unigram_) return std::make_unique<UnigramEncoder>(model_, *unigram_);
    if (model_.kind == SentencePieceModel::Kind::word) return std::make_unique<WordEncoder>(model_);
    return std::make_unique<CharacterEncoder>(model_, normalizer_);
}

std::string SentencePieceCore::decode(std::span<const std::int32_t> ids) const {
    std::string text, bytes;
    bool at_beginning = true, space_taken = false;
    for (const std::int32_t id : ids) {
        const SentencePieceModel::Piece& piece = model_.piece(id);
        if (piece.type == PieceType::byte) {
            bytes += static_cast<char>(byte_of_piece(piece.text));
            continue;
        }
        append_bytes(bytes, text);
        bytes.clear();
        // The space that encoding put in front goes; so do all spaces in front where encoding takes them out.
        if (space_taken || !text.empty()) at_beginning = false;
        space_taken = false;
        if (piece.type == PieceType::control) continue;
        if (piece.type == PieceType::unknown) {
            text += model_.unk_surface;
            continue;
        }
        std::string_view shown = piece.text;
        if (at_beginning && (model_.add_dummy_prefix || model_.remove_extra_whitespaces) &&
            shown.starts_with(sentencepiece_space)) {
            shown.remove_prefix(sentencepiece_space.size());
            space_taken = !model_.remove_extra_whitespaces;
        }
        append_piece(shown, text);
    }
    append_bytes(bytes, text);
    return text;
}

}  // namespace tera
