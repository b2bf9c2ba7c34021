#include "token/sentencepiece_model.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/error.h"

namespace tera {

namespace {

constexpr std::size_t longest_piece = 8000;  // bytes; SentencePiece refuses longer ones

/// Reads the fields of one message.
class WireReader {
  public:
    WireReader(std::string_view bytes, const char* whole, const std::string& file)
        : p_(bytes.data()), end_(bytes.data() + bytes.size()), whole_(whole), file_(file) {}

    /// Goes to the next field; false at the end of the message.
    bool next() {
        if (p_ == end_) return false;
        const std::uint64_t tag = varint();
        field_ = tag >> 3;
        type_ = static_cast<int>(tag & 7);
        number_ = 0;
        bytes_ = {};
        switch (type_) {
            case 0:
                number_ = varint();
                break;
            case 1:
                take(8);
                break;
            case 2:
                bytes_ = take(varint());
                break;
            case 5: {
                std::uint32_t value = 0;
                std::memcpy(&value, take(4).data(), 4);
                number_ = value;
                break;
            }
            default:
                broken();
        }
        if (field_ == 0) broken();
        return true;
    }

    bool is(std::uint64_t field, int type) const { return field_ == field && type_ == type; }
    std::uint64_t number() const { return number_; }
    std::string_view bytes() const { return bytes_; }
    WireReader message() const { return {bytes_, whole_, file_}; }

  private:
    std::uint64_t varint() {
        std::uint64_t value = 0;
        for (int shift = 0; shift < 64 && p_ < end_; shift += 7) {
            const auto byte = static_cast<unsigned char>(*p_++);
            value |= std::uint64_t{byte & 0x7Fu} << shift;
            if (byte < 0x80) return value;
        }
        broken();
    }
    std::string_view take(std::uint64_t count) {
        if (count > static_cast<std::uint64_t>(end_ - p_)) broken();
        const std::string_view taken(p_, static_cast<std::size_t>(count));
        p_ += count;
        return taken;
    }
    [[noreturn]] void broken() const {
        usage_error(file_, ": is not a SentencePiece model, or is damaged (at byte ", p_ - whole_, ")");
    }

    const char* p_;
    const char* end_;
    const char* whole_;
    const std::string& file_;
    std::uint64_t field_ = 0, number_ = 0;
    int type_ = 0;
    std::string_view bytes_;
};

void read_piece(WireReader fields, SentencePieceModel& model, const std::string& file) {
    SentencePieceModel::Piece piece;
    while (fields.next()) {
        if (fields.is(1, 2)) piece.text = fields.bytes();
        if (fields.is(2, 5)) piece.score = std::bit_cast<float>(static_cast<std::uint32_t>(fields.number()));
        if (fields.is(3, 0)) {
            if (fields.number() < 1 || fields.number() > 6)
                usage_error(file, ": piece ", model.size(), " has type ", fields.number(), ", which is none of 1 to 6");
            piece.type = static_cast<PieceType>(fields.number());
        }
    }
    model.pieces.push_back(std::move(piece));
}

void read_trainer(WireReader fields, SentencePieceModel& model, const std::string& file) {
    while (fields.next()) {
        if (fields.is(3, 0)) {
            if (fields.number() < 1 || fields.number() > 4)
                usage_error(file, ": model type ", fields.number(),
                            " is unknown; there are unigram (1), bpe (2), word "
                            "(3) and char (4)");
            model.kind = static_cast<SentencePieceModel::Kind>(fields.number());
        }
        if (fields.is(24, 0)) model.whitespace_is_suffix = fields.number() != 0;
        if (fields.is(35, 0)) model.byte_fallback = fields.number() != 0;
        if (fields.is(44, 2)) model.unk_surface = fields.bytes();
        // An empty name stands for the usual one.
        if (fields.bytes().empty()) continue;
        if (fields.is(45, 2)) model.unk_piece = fields.bytes();
        if (fields.is(46, 2)) model.bos_piece = fields.bytes();
        if (fields.is(47, 2)) model.eos_piece = fields.bytes();
        if (fields.is(48, 2)) model.pad_piece = fields.bytes();
    }
}

void read_normalizer(WireReader fields, SentencePieceModel& model) {
    while (fields.next()) {
        if (fields.is(2, 2)) model.charsmap = fields.bytes();
        if (fields.is(3, 0)) model.add_dummy_prefix = fields.number() != 0;
        if (fields.is(4, 0)) model.remove_extra_whitespaces = fields.number() != 0;
        if (fields.is(5, 0)) model.escape_whitespaces = fields.number() != 0;
    }
}

void read_denormalizer(WireReader fields, SentencePieceModel& model) {
    while (fields.next())
        if (fields.is(2, 2) && !fields.bytes().empty()) model.has_denormalizer = true;
}

void check_piece(const SentencePieceModel& model, std::int32_t id, const std::string& file) {
    const SentencePieceModel::Piece& piece = model.piece(id);
    if (piece.text.empty()) usage_error(file, ": piece ", id, " is empty");
    if (piece.text.size() >= longest_piece)
        usage_error(file, ": piece ", id, " has ", piece.text.size(), " bytes; at most ", longest_piece - 1,
                    " are allowed");
    if (piece.text.find('\0') != std::string::npos) usage_error(file, ": piece ", id, " holds a null character");
    if (!std::isfinite(piece.score)) usage_error(file, ": piece ", id, " has a score that is not a number");
    if (piece.type == PieceType::byte) {
        if (!model.byte_fallback) usage_error(file, ": piece ", id, " is a byte, but the model has no byte fallback");
        if (byte_of_piece(piece.text) < 0)
            usage_error(file, ": piece ", id, " is marked as a byte but is not named like <0x0A>");
    }
}

void index_pieces(SentencePieceModel& model, const std::string& file) {
    std::array<bool, 256> byte_found{};
    for (std::int32_t id = 0; id < model.size(); ++id) {
        check_piece(model, id, file);
        const SentencePieceModel::Piece& piece = model.piece(id);
        const bool in_text =
            piece.type == PieceType::normal || piece.type == PieceType::user_defined || piece.type == PieceType::unused;
        if (!(in_text ? model.text_ids : model.reserved_ids).emplace(piece.text, id).second)
            usage_error(file, ": piece ", id, " is there twice");
        if (piece.type == PieceType::byte) byte_found[static_cast<std::size_t>(byte_of_piece(piece.text))] = true;
        if (piece.type != PieceType::unknown) continue;
        if (model.unk_id >= 0) usage_error(file, ": pieces ", model.unk_id, " and ", id, " are both marked unknown");
        model.unk_id = id;
    }
    if (model.unk_id < 0) usage_error(file, ": no piece is marked unknown; is it a SentencePiece model?");
    if (!model.byte_fallback) return;
    for (int byte = 0; byte < 256; ++byte)
        if (!byte_found[static_cast<std::size_t>(byte)])
            usage_error(file, ": the model has byte fallback but no piece for byte ", byte);
}

}  // namespace

int byte_of_piece(std::string_view piece) {
    const auto hex = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; };
    if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
    const int high = hex(piece[3]), low = hex(piece[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::int32_t SentencePieceModel::id_of(std::string_view text) const {
    if (const auto found = reserved_ids.find(text); found != reserved_ids.end()) return found->second;
    const auto found = text_ids.find(text);
    return found == text_ids.end() ? unk_id : found->second;
}

std::int32_t SentencePieceModel::control_id(std::string_view text) const {
    const std::int32_t id = id_of(text);
    return piece(id).type == PieceType::control ? id : -1;
}

SentencePieceModel parse_sentencepiece_model(std::string_view bytes, const std::string& file) {
    SentencePieceModel model;
    WireReader fields(bytes, bytes.data(), file);
    while (fields.next()) {
        if (fields.is(1, 2)) read_piece(fields.message(), model, file);
        if (fields.is(2, 2)) read_trainer(fields.message(), model, file);
        if (fields.is(3, 2)) read_normalizer(fields.message(), model);
        if (fields.is(5, 2)) read_denormalizer(fields.message(), model);
    }
    if (model.pieces.empty()) usage_error(file, ": is not a SentencePiece model: it has no pieces");
    index_pieces(model, file);
    return model;
}

}  // namespace tera
