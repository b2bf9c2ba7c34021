// Words of millions of letters, in every kind of tokenizer. A method whose time grows with the square of the length
// takes hours and runs into the limit of the test; these take a fraction of a second each.
#include <gtest/gtest.h>

#include "token/tokenizer.h"

namespace tera {
namespace {

constexpr std::size_t length = 1 << 20;  // bytes
const std::string golden = TERA_SOURCE_DIR "/tests/golden/";

struct Kind {
    std::string type, file;  // below golden
    bool keeps_text;         // decoding gives the text again
};

std::string name_of(const Kind& kind) {
    std::string name = kind.file;
    for (char& c : name)
        if (c == '/' || c == '.') c = '_';
    return name;
}

class LongWords : public testing::TestWithParam<Kind> {};

TEST_P(LongWords, StayNearLinear) {
    TokenizerConfig config;
    config.tokenizer_type = GetParam().type;
    config.tokenizer_model = golden + GetParam().file;
    const std::unique_ptr<Tokenizer> tokenizer = make_tokenizer(config);
    for (const std::string unit : {"a", "ab", "abcabd", " ", "e ", "\u4e2d", "\xff"}) {
        std::string text;
        while (text.size() < length) text += unit;
        std::vector<std::int32_t> ids;
        tokenizer->encode(text, ids);
        EXPECT_GE(ids.size(), unit == " " ? 0u : 1u) << unit;  // some normalise blanks away
        EXPECT_LE(ids.size(), 3 * length + 2) << unit;         // three bytes of U+FFFD for each that is invalid
        if (GetParam().keeps_text && unit[0] == 'a') {
            EXPECT_TRUE(tokenizer->decode(ids) == text) << unit;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, LongWords,
                         testing::Values(Kind{"GPTSentencePieceTokenizer", "sentencepiece/bpe_llama.model", true},
                                         Kind{"GPTSentencePieceTokenizer", "sentencepiece/bpe_across.model", false},
                                         Kind{"GPTSentencePieceTokenizer", "sentencepiece/unigram_bytes.model", true},
                                         Kind{"GPTSentencePieceTokenizer", "sentencepiece/unigram.model", false},
                                         Kind{"GPTSentencePieceTokenizer", "sentencepiece/word.model", false},
                                         Kind{"HuggingFaceTokenizer", "hf/unigram", false},
                                         Kind{"HuggingFaceTokenizer", "hf/unigram_bytes", false},
                                         Kind{"HuggingFaceTokenizer", "hf/llama2", false},
                                         Kind{"HuggingFaceTokenizer", "hf/gpt2", true},
                                         Kind{"HuggingFaceTokenizer", "hf/bert", false}),
                         [](const auto& kind) { return name_of(kind.param); });

}  // namespace
}  // namespace tera
