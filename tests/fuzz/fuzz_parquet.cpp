// Parquet files, as inputs of preprocess. Without the module that reads them there is nothing to try.
#include "fuzz/fuzz.h"
#include "io/parquet_rows.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    const auto bytes = [](const std::string& hex) {
        std::string out;
        for (std::size_t i = 0; i < hex.size(); i += 2)
            out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
        return out;
    };
    // A column "text" of four rows, one of them null: a dictionary packed with zstd; plain values in pages of
    // version 2.
    const std::string dictionary = bytes(
        "50415231150415be0115464c1506150012000028b52ffd205fd500009803000000616263000000005000000064"
        "c3a966010073d485011500151415262c15081510150615061c00000028b52ffd200a51000002000000030d0203"
        "24001504192c35001806736368656d61150200150c250218047465787425004c1c0000001608191c191c26001c"
        "150c193500061019180474657874150c160816960216b001266c2608292c15041500150200150015101502003c"
        "16a6011906192602060000001696021608260816b001002820706172717565742d6370702d6172726f77207665"
        "7273696f6e2032362e302e31191c1c0000009700000050415231");
    const std::string plain = bytes(
        "50415231150615c20115c2015c150815021508150015041500121c000000030d03000000616263000000005000"
        "000064c3a96664c3a96664c3a96664c3a96664c3a96664c3a96664c3a96664c3a96664c3a96664c3a96664c3a9"
        "6664c3a96664c3a96664c3a96664c3a96664c3a96664c3a96664c3a96664c3a96664c3a9661504192c35001806"
        "736368656d61150200150c250218047465787425004c1c0000001608191c191c26001c150c1925060019180474"
        "6578741500160816f60116f6012608491c150015001502003c16a60119061926020600000016f6011608260816"
        "f601002820706172717565742d6370702d6172726f772076657273696f6e2032362e302e31191c1c0000008d00"
        "000050415231");
    return {dictionary, plain, "PAR1"};
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    if (!parquet_missing().empty()) return 0;
    const fuzz::MemoryFile file(data, size);
    fuzz::attempt([&] {
        const auto rows = open_parquet(file.path(), {"text"});
        TextColumns part;
        std::int64_t read = 0;
        while (read < 100000 && rows->next(part, 4096)) {  // a header may promise any number of rows
            read += static_cast<std::int64_t>(part.rows());
            for (std::size_t r = 0; r < part.rows(); ++r) (void)part.columns[0].value(r).size();
            if (rows->row() != read) __builtin_trap();
        }
    });
    return 0;
}
