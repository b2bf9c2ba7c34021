// Vocabularies of tiktoken (.tiktoken and JSON) and of BERT, and text encoded with them; and the same bytes cut into
// sentences.
#include "fuzz/fuzz.h"
#include "token/bert_tokenizer.h"
#include "token/sentence_splitter.h"
#include "token/tiktoken_files.h"
#include "token/tiktoken_tokenizer.h"

namespace tera::fuzz {

std::vector<std::string> seeds() {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string ranks;
    for (unsigned byte = 0; byte < 256; ++byte)
        ranks += std::string{digits[byte >> 2], digits[byte << 4 & 63], '=', '='} + " " + std::to_string(byte) + "\n";
    return {ranks, ranks + "YWI= 256\nYWJh 257\n", "[{\"rank\": 0, \"token_bytes\": \"AA==\", \"token_str\": null}]",
            "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nab\n##b\na\n\u00e9\n",
            "Mr. Fox ran. \"He stopped!\"\n\nThe end\u3002 U.S. 3.14 ... x"};
}

}  // namespace tera::fuzz

namespace {

void check_ids(const tera::Tokenizer& tokenizer, std::string_view text) {
    std::vector<std::int32_t> ids;
    tokenizer.encode("ab ba  ab\n\xff\xc3 \u0391\u03a3 e\u0301", ids);
    tokenizer.encode(text, ids);
    for (const std::int32_t id : ids)
        if (id < 0 || id >= tokenizer.vocab_size()) __builtin_trap();
    (void)tokenizer.decode(ids);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    fuzz::attempt([&] { (void)parse_tiktoken_json(all, "x.json", 1); });
    fuzz::attempt([&] {
        TiktokenVocab vocab;
        vocab.tokens = parse_tiktoken_ranks(all, "x.tiktoken");
        vocab.size = static_cast<std::int64_t>(vocab.tokens.size());
        check_ids(TiktokenTokenizer(std::move(vocab)), all);
    });
    for (const bool lower_case : {false, true})
        fuzz::attempt([&] { check_ids(BertTokenizer(all, "vocab.txt", {lower_case, 2}), all); });
    std::vector<std::string_view> sentences;
    SentenceSplitter({"english", true}).split(all, sentences);
    std::size_t length = 0;
    for (const std::string_view sentence : sentences) length += sentence.size();
    if (length != all.size()) __builtin_trap();
    return 0;
}
