// vocab.json and merges.txt, one after the other with a zero byte between, and the tokenizer they make: text encoded
// with it decodes to itself.
#include "fuzz/fuzz.h"
#include "token/byte_level.h"
#include "token/gpt2_bpe.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    BpeVocab vocab;
    std::string all_bytes;
    vocab.token_of_id = {"a", "b", "ab", "\u0120", "\u0120ab", std::string(end_of_text)};
    BpeMerges merges;
    merges.pairs = {{"a", "b"}, {"\u0120", "ab"}};
    const std::string zero(1, '\0');
    return {vocab_json_text(vocab) + zero + merges_text(merges), "{}" + zero + "#version: 0.2\n",
            "{\"<|endoftext|>\": 0}" + zero + "#version: 0.2\na b\n"};
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::size_t zero = std::min(all.find('\0'), all.size());
    const std::string_view vocab_text = all.substr(0, zero), merges_part = all.substr(std::min(zero + 1, all.size()));
    fuzz::attempt([&] { (void)parse_merges(all, "merges.txt"); });
    fuzz::attempt([&] {
        BpeVocab vocab = parse_vocab_json(vocab_text, "vocab.json");
        BpeMerges merges = parse_merges(merges_part, "merges.txt");
        const Gpt2BpeTokenizer tokenizer(std::move(vocab), std::move(merges), "vocab.json");
        std::vector<std::int32_t> ids;
        tokenizer.encode("ab ba  ab\n\xff\xc3", ids);
        for (const std::int32_t id : ids) {
            if (id < 0 || id >= tokenizer.vocab_size()) __builtin_trap();
        }
        (void)tokenizer.decode(ids);
        (void)tokenizer.files();
    });
    return 0;
}
