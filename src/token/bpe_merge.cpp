#include "core/error.h"
#include "token/bpe.h"

namespace tera {

void BpeMerger::encode(std::string_view piece, std::vector<std::int32_t>& ids) {
    if (const std::int32_t whole = model_.whole_piece(piece); whole >= 0) {
        ids.push_back(whole);
    } else if (piece.size() <= ShortWord::most && model_.order() == MergeOrder::leftmost) {
        merge_short(piece);
        const std::size_t first = ids.size();
        ids.resize(first + short_.count());
        std::int32_t* out = ids.data() + first;
        short_.for_each([&](std::uint32_t symbol, std::uint32_t) { *out++ = model_.id_of(symbol); });
    } else {
        symbols_.clear();
        for (const char c : piece)
            if (!model_.drops(static_cast<unsigned char>(c))) symbols_.push_back(static_cast<unsigned char>(c));
        merger_.merge(symbols_);
        for (const std::uint32_t symbol : symbols_) ids.push_back(model_.id_of(symbol));
    }
}

void BpeMerger::merge_short(std::string_view piece, std::uint32_t fewest) {
    std::uint32_t n = 0;
    for (const char c : piece) {
        const auto byte = static_cast<unsigned char>(c);
        short_.put(n, byte);
        n += !model_.drops(byte);
    }
    const auto merge_of = [this](std::uint32_t left, std::uint32_t right) {
        return model_.merge_of_bytes(left, right);
    };
    short_.merge(model_.rules(), n, merge_of, fewest);
}

}  // namespace tera
