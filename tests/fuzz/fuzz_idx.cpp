// .idx files: whatever parse() accepts must be safe to walk.
#include <cstring>
#include <limits>
#include <span>

#include "data/indexed_dataset.h"
#include "fuzz/fuzz.h"

namespace tera::fuzz {
namespace {

template <class T>
void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string index_image(TokenType type, const std::vector<std::int32_t>& lengths,
                        const std::vector<std::int64_t>& documents, bool modes) {
    std::string out("MMIDIDX\0\0", 9);
    put<std::uint64_t>(out, 1);
    put(out, type);
    put<std::uint64_t>(out, lengths.size());
    put<std::uint64_t>(out, documents.size());
    for (const std::int32_t n : lengths) put(out, n);
    std::int64_t offset = 0;
    for (const std::int32_t n : lengths) {
        put(out, offset);
        offset += n * item_size(type);
    }
    for (const std::int64_t d : documents) put(out, d);
    if (modes) out.append(lengths.size(), '\0');
    return out;
}

}  // namespace

std::vector<std::string> seeds() {
    // Offsets at both ends of the range, in the type whose width is told from them: their difference overflowed.
    std::string far_offsets = index_image(TokenType::f32, {2, 2}, {0, 2}, false);
    const std::int64_t ends[2] = {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
    std::memcpy(far_offsets.data() + 34 + 8, ends, sizeof ends);
    return {far_offsets,
            index_image(TokenType::u16, {3, 1, 4, 1, 5}, {0, 2, 5}, false),
            index_image(TokenType::i32, {7}, {0, 1}, false),
            index_image(TokenType::u16, {}, {0}, false),
            index_image(TokenType::u8, {0, 2}, {0, 0, 1, 2}, true),
            index_image(TokenType::f32, {2, 2}, {0, 2}, false)};
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    fuzz::attempt([&] {
        const auto index = SequenceIndex::parse(std::as_bytes(std::span(data, size)), "fuzz.idx");
        std::int64_t tokens = 0;
        for (std::int64_t i = 0; i < index.sequences(); ++i) {
            if (index.offset(i) != tokens * index.token_size()) __builtin_trap();
            tokens += index.length(i);
            if (index.has_modes()) (void)index.mode(i);
        }
        if (tokens != index.tokens() || index.bin_size() < 0) __builtin_trap();
        for (std::int64_t d = 0; d < index.documents(); ++d) {
            if (index.document_index(d) > index.document_index(d + 1)) __builtin_trap();
        }
        if (index.document_index(index.documents()) != index.sequences()) __builtin_trap();
    });
    return 0;
}
