// From normalised text to the ids of a SentencePiece model, and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "token/sentencepiece_model.h"
#include "token/sentencepiece_normalizer.h"

namespace tera {

/// Encodes for one thread at a time.
class PieceEncoder {
  public:
    virtual ~PieceEncoder() = default;
    /// Appends the ids of normalised text.
    virtual void encode(std::string_view normalized, std::vector<std::int32_t>& ids) = 0;
};

/// Writes ids as SentencePiece does: unknown text in a row is one unknown id, or its bytes where the model has those.
class PieceWriter {
  public:
    explicit PieceWriter(const SentencePieceModel& model);

    void begin() { after_unknown_ = false; }
    void add(std::int32_t id, std::string_view text, std::vector<std::int32_t>& ids) {
        if (id != unk_id_) {
            ids.push_back(id);
            after_unknown_ = false;
        } else if (!byte_ids_.empty()) {
            for (const char c : text) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
        } else {
            if (!after_unknown_) ids.push_back(id);
            after_unknown_ = true;
        }
    }
    /// Ids that a writer has written before.
    void add_written(std::span<const std::int32_t> written, std::vector<std::int32_t>& ids) {
        if (written.empty()) return;
        const bool drop_first = after_unknown_ && written.front() == unk_id_;
        ids.insert(ids.end(), written.begin() + (drop_first ? 1 : 0), written.end());
        after_unknown_ = written.back() == unk_id_;
    }

  private:
    std::int32_t unk_id_;
    std::vector<std::int32_t> byte_ids_;  // empty without byte fallback
    bool after_unknown_ = false;
};

class PieceMerges;
class UnigramTable;

/// A model with what its encoders share. Immutable.
class SentencePieceCore {
  public:
    /// UsageError (naming `file`) for a model that cannot be run.
    SentencePieceCore(SentencePieceModel model, const std::string& file);
    ~SentencePieceCore();

    const SentencePieceModel& model() const { return model_; }
    const SentencePieceNormalizer& normalizer() const { return normalizer_; }
    std::unique_ptr<PieceEncoder> make_encoder() const;
    /// Ids must be in range. Byte pieces that are no UTF-8 become U+FFFD, each of them.
    std::string decode(std::span<const std::int32_t> ids) const;

  private:
    SentencePieceModel model_;
    SentencePieceNormalizer normalizer_;
    std::unique_ptr<PieceMerges> merges_;
    std::unique_ptr<UnigramTable> unigram_;
};

/// Length of the character that begins with this byte, as SentencePiece reckons it; at most text.size().
inline std::size_t char_length(std::string_view text) {
    constexpr unsigned char lengths[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    const std::size_t length = lengths[static_cast<unsigned char>(text[0]) >> 4];
    return length < text.size() ? length : text.size();
}

}  // namespace tera
