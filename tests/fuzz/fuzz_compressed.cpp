// Compressed streams of every kind, as inputs of preprocess.
#include "fuzz/fuzz.h"
#include "io/byte_source.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    const auto bytes = [](const char* hex) {
        std::string out;
        for (; hex[0] != '\0'; hex += 2) out += static_cast<char>(std::stoi(std::string(hex, 2), nullptr, 16));
        return out;
    };
    // "abc\n" ten times: gzip, zstd with a checksum, xz, bzip2; then two of one kind in a row.
    const std::string gzip = bytes("1f8b08000000000002034b4c4ae64a24020300923883d428000000");
    const std::string zstd = bytes("28b52ffd0458550000206162630a0100271d1134e6ac8f");
    const std::string xz = bytes(
        "fd377a585a000004e6d6b4460200210116000000742fe5a3e00027000a5d003098889144403d1a2000000000af"
        "276458dd23092a00012628f59eedd61fb6f37d010000000004595a");
    const std::string bzip2 =
        bytes("425a6839314159265359e4bfe4d2000009c10000103800200020a500cd34e4c4d4e4f177245385090e4bfe4d20");
    return {gzip, zstd, xz, bzip2, gzip + gzip, zstd + zstd, "plain"};
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    const fuzz::MemoryFile file(data, size);
    fuzz::attempt([&] {
        const auto source = open_bytes(file.path());
        std::string part(1 << 12, '\0');
        std::int64_t total = 0;
        for (;;) {
            const std::size_t got = source->read(part);
            total += static_cast<std::int64_t>(got);
            if (source->position() != total || source->restart_point().position > total) __builtin_trap();
            if (got < part.size() || total > (1 << 22)) break;  // a bomb may go on for long
        }
    });
    return 0;
}
