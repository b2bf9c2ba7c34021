// tokenizer.json: whatever the file says, it is refused or gives a tokenizer whose ids are in range, on any text.
#include "fuzz/fuzz.h"
#include "token/hf_tokenizer.h"

namespace tera::fuzz {

namespace {

std::string file(const std::string& normalizer, const std::string& pre_tokenizer, const std::string& decoder,
                 const std::string& model) {
    return "{\"version\":\"1.0\",\"added_tokens\":[{\"id\":0,\"content\":\"</"
           "s>\",\"special\":true,\"normalized\":false,"
           "\"lstrip\":true,\"rstrip\":true,\"single_word\":false},{\"id\":1,\"content\":\"Ab\",\"normalized\":true,"
           "\"single_word\":true,\"special\":false}],\"normalizer\":" +
           normalizer + ",\"pre_tokenizer\":" + pre_tokenizer +
           ",\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"</s>\","
           "\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{\"</s>\":"
           "{\"id\":\"</s>\",\"ids\":[0],\"tokens\":[\"</s>\"]}}},\"decoder\":" +
           decoder + ",\"model\":" + model + "}";
}

}  // namespace

std::vector<std::string> seeds() {
    const std::string words =
        "{\"</s>\":0,\"a\":1,\"b\":2,\"ab\":3,\"\u0120\":4,\"\u2581\":5,\"\u2581a\":6,\"<0xC3>\":7}";
    const std::string bpe =
        "{\"type\":\"BPE\",\"unk_token\":\"</s>\",\"fuse_unk\":true,\"byte_fallback\":true,"
        "\"ignore_merges\":false,\"vocab\":" +
        words + ",\"merges\":[\"a b\",[\"\u2581\",\"a\"]]}";
    const std::string byte_bpe =
        "{\"type\":\"BPE\",\"ignore_merges\":true,\"vocab\":" + words + ",\"merges\":[\"a b\"]}";
    const std::string word_piece =
        "{\"type\":\"WordPiece\",\"unk_token\":\"</s>\",\"continuing_subword_prefix\":\"a\","
        "\"max_input_chars_per_word\":100,\"vocab\":" +
        words + "}";
    const std::string unigram =
        "{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"</s>\",0],"
        "[\"a\",-1.5],[\"ab\",-2e-1],[\"\u2581\",-3]]}";
    const std::string bert =
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"BertNormalizer\",\"clean_text\":true,"
        "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
        "{\"type\":\"NFKC\"},{\"type\":\"StripAccents\"},{\"type\":\"Strip\",\"strip_left\":true,"
        "\"strip_right\":true}]}";
    const std::string llama =
        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\u2581\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\u2581\"},"
        "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\"x\"}]}";
    // Rules "A" -> "a" in a double array of 1024 units would be 5 kB; damaged ones are what matters here.
    const std::string charsmap = "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"CAAAAAEEAABBAQAAYQA=\"}";
    const std::string fallback =
        "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
        "\"\u2581\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
        "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}";
    return {
        file("null", "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":true}",
             "{\"type\":\"ByteLevel\"}", byte_bpe),
        file(llama, "null", fallback, bpe),
        file(bert, "{\"type\":\"BertPreTokenizer\"}", "{\"type\":\"WordPiece\",\"prefix\":\"a\",\"cleanup\":true}",
             word_piece),
        file(charsmap,
             "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"first\",\"split\":true}",
             "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"always\"}", unigram),
        file("{\"type\":\"NFD\"}",
             "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Whitespace\"},{\"type\":\"Digits\","
             "\"individual_digits\":false},{\"type\":\"Punctuation\",\"behavior\":\"MergedWithNext\"},{\"type\":"
             "\"Split\",\"pattern\":{\"String\":\"a\"},\"behavior\":\"MergedWithPrevious\",\"invert\":true}]}",
             "null", word_piece),
    };
}

}  // namespace tera::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace tera;
    // A zero byte ends the file; behind it is text to encode.
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const std::size_t zero = std::min(all.find('\0'), all.size());
    const std::string text(all.substr(std::min(zero + 1, all.size())));
    fuzz::attempt([&] {
        const auto tokenizer = parse_hugging_face_tokenizer(std::string(all.substr(0, zero)), "tokenizer.json");
        std::vector<std::int32_t> ids;
        for (const std::string& one :
             {text,
              std::string(
                  "Ab a\u0301b</s>  \u4f60\u597d ab\u00e9 12 ab, \u1112\u1161\u11ab \u00bd\r\n\xff\xc3 \u2581 a b"),
              std::string(300, 'a')}) {
            ids.clear();
            tokenizer->encode(one, ids);
            for (const std::int32_t id : ids) {
                if (id < 0 || id >= tokenizer->vocab_size()) __builtin_trap();
            }
            (void)tokenizer->decode(ids);
        }
        (void)tokenizer->files();
    });
    return 0;
}
