// A SentencePiece model, and some text encoded and decoded with it. The seeds are tiny models of every kind.
#include "fuzz/fuzz.h"
#include "token/sentencepiece_tokenizer.h"

namespace tera::fuzz {

namespace {

std::string field(int number, int type, const std::string& content) {
    std::string out;
    for (int tag = number << 3 | type; tag > 0; tag >>= 7)
        out += static_cast<char>((tag & 127) | (tag > 127 ? 128 : 0));
    if (type == 2) out += static_cast<char>(content.size());
    return out + content;
}

std::string piece(const std::string& text, char type, const std::string& score) {
    return field(1, 2, field(1, 2, text) + field(2, 5, score) + field(3, 0, std::string(1, type)));
}

std::string model(char kind, const std::string& charsmap) {
    const std::string low("\0\0\x80\xBF", 4), high("\0\0\0\xBF", 4);
    std::string bytes = piece("<unk>", 2, low) + piece("<s>", 3, low) + piece("</s>", 3, low) + piece("a", 1, low) +
                        piece("b", 1, high) + piece("ab", 1, low) + piece("\u2581a", 1, high) + piece("<x>", 4, low);
    bytes += field(2, 2, field(3, 0, std::string(1, kind)) + field(24, 0, std::string(1, '\0')));
    return bytes + field(3, 2, field(3, 0, "\x01") + (charsmap.empty() ? "" : field(2, 2, charsmap)));
}

}  // namespace

std::vector<std::string> seeds() {
    const std::string charsmap("\x08\0\0\0\0\x04\0\0a\x01\x80\x01x\0y\0", 16);
    return {model(1, ""), model(2, ""), model(3, ""), model(4, ""), model(1, charsmap), model(2, charsmap)};
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    const std::string bytes(reinterpret_cast<const char*>(data), size);
    for (const auto flavour : {SentencePieceFlavour::megatron, SentencePieceFlavour::llama2}) {
        fuzz::attempt([&] {
            const bool is_megatron = flavour == SentencePieceFlavour::megatron;
            const SentencePieceTokenizer tokenizer(bytes, "x.model", flavour, is_megatron ? 2 : 0);
            std::vector<std::int32_t> ids;
            tokenizer.encode("ab ba  <x>a\u2581b</s>abababababababababababababababababababababababababababab\xff\xc3",
                             ids);
            tokenizer.encode(std::string_view(bytes).substr(bytes.size() / 2), ids);
            for (const std::int32_t id : ids) {
                if (id < 0 || id >= tokenizer.vocab_size()) __builtin_trap();
            }
            (void)tokenizer.decode(ids);
        });
    }
    return 0;
}
