// The .model file of SentencePiece: a protocol-buffer message (ModelProto) with the pieces, how they were trained and
// how text is normalised. Only the fields that encoding and decoding need are read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tera {

/// U+2581, which stands for a space in pieces.
inline constexpr std::string_view sentencepiece_space = "\xE2\x96\x81";

enum class PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

struct SentencePieceModel {
    enum class Kind { unigram = 1, bpe = 2, word = 3, character = 4 };
    struct Piece {
        std::string text;
        float score = 0;
        PieceType type = PieceType::normal;
    };

    std::vector<Piece> pieces;  // by id
    Kind kind = Kind::unigram;
    bool byte_fallback = false;
    bool whitespace_is_suffix = false;
    std::string unk_piece = "<unk>", bos_piece = "<s>", eos_piece = "</s>", pad_piece = "<pad>";
    std::string unk_surface = " \xE2\x81\x87 ";  // what an unknown piece decodes to

    std::string charsmap;  // precompiled rules of normalisation; empty: none
    bool add_dummy_prefix = true;
    bool remove_extra_whitespaces = true;
    bool escape_whitespaces = true;
    bool has_denormalizer = false;

    std::int32_t unk_id = -1;

    /// Pieces that text can give (normal, user-defined, unused), and all others.
    std::unordered_map<std::string_view, std::int32_t> text_ids, reserved_ids;

    std::int32_t size() const { return static_cast<std::int32_t>(pieces.size()); }
    const Piece& piece(std::int32_t id) const { return pieces[static_cast<std::size_t>(id)]; }
    /// As SentencePiece's piece_to_id: unk_id for what is not there.
    std::int32_t id_of(std::string_view text) const;
    /// Id of a piece that must be a control symbol, or -1.
    std::int32_t control_id(std::string_view text) const;
    std::int32_t bos_id() const { return control_id(bos_piece); }
    std::int32_t eos_id() const { return control_id(eos_piece); }
    std::int32_t pad_id() const { return control_id(pad_piece); }

    SentencePieceModel() = default;
    SentencePieceModel(const SentencePieceModel&) = delete;  // the maps refer to the pieces
    SentencePieceModel& operator=(const SentencePieceModel&) = delete;
    SentencePieceModel(SentencePieceModel&&) = default;
};

/// UsageError (naming `file`) for bytes that are no such message, and for models that SentencePiece refuses: empty or
/// repeated pieces, not exactly one unknown piece, byte pieces missing, scores that are no numbers.
SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& file);

/// The byte that a piece like <0x0A> stands for, or -1.
int byte_of_piece(std::string_view piece);

}  // namespace tera
