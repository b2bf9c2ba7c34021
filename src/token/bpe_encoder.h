// Text to ids by byte-level BPE: cut into pieces, look each piece up among those seen before, merge the rest.
//
// Pieces are handled in batches: first their keys are worked out and the places of the table fetched, then the ids are
// taken, so that the waits for memory overlap.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "token/bpe.h"
#include "token/piece_scanner.h"
#include "token/piece_table.h"
#include "token/tokenizer.h"

namespace tera {

class BpeEncoder : public Encoder {
  public:
    /// The model must outlive the encoder.
    BpeEncoder(const BpeModel& model, PretokenPattern pattern) : merger_(model), pattern_(pattern) {}

    /// Appends the ids of all pieces of the text.
    void encode(std::string_view text, std::vector<std::int32_t>& ids) override;
    /// Appends the ids of a text that is one piece, for patterns that token/pretokenize.h does not know.
    void encode_piece(std::string_view piece, std::vector<std::int32_t>& ids);

  private:
    static constexpr std::size_t batch = 64;
    struct Pending {
        PieceTable::Key key;
        std::uint64_t hash;
        const char* begin;
        std::size_t size;
    };
    void prepare(Pending& piece, const char* text_end) const;
    void add(const Pending& piece, std::vector<std::int32_t>& ids);
    void add_new(const Pending& piece, std::vector<std::int32_t>& ids);
    void flush(std::vector<std::int32_t>& ids);

    BpeMerger merger_;
    PretokenPattern pattern_;
    PieceTable table_;
    std::array<std::uint32_t, 1024> ends_;
    std::array<Pending, batch> pending_;
    std::array<std::int32_t, 4096> ready_;  // ids on their way to the caller
    std::size_t used_ = 0;
};

}  // namespace tera
