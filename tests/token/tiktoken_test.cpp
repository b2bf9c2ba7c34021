// tiktoken vocabularies, made for the purpose; tests/oracle/tiktoken_oracle.py compares with the package.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/expect_usage_error.h"
#include "support/temp_folder.h"
#include "token/tiktoken_files.h"
#include "token/tiktoken_tokenizer.h"

namespace tera {
namespace {

using Ids = std::vector<std::int32_t>;

std::string base64(std::string_view bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t bits = 0;
        for (std::size_t k = 0; k < 3; ++k)
            bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        for (std::size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

std::vector<std::string> some_tokens() {
    std::vector<std::string> tokens;
    for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
    for (const char* token : {"he", "ll", "hell", "hello", " w", "or", "ld", " wor", " world", "12"})
        tokens.emplace_back(token);
    return tokens;
}

std::string json_text(const std::vector<std::string>& tokens) {
    std::string text = "[";
    for (std::size_t i = 0; i < tokens.size(); ++i)
        text += std::string(i > 0 ? ", " : "") + "{\"rank\": " + std::to_string(i) + ", \"token_bytes\": \"" +
                base64(tokens[i]) + "\", \"token_str\": null}";
    return text + "]";
}

std::string rank_text(const std::vector<std::string>& tokens) {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) text += base64(tokens[i]) + " " + std::to_string(i) + "\n";
    return text;
}

class Tiktoken : public testing::Test {
  protected:
    TokenizerConfig flags(const std::string& content) {
        std::ofstream(folder_ / "file") << content;
        TokenizerConfig config;
        config.tokenizer_type = "TikTokenizer";
        config.tokenizer_model = folder_ / "file";
        config.tiktoken_pattern = "v1";
        return config;
    }
    TokenizerConfig json_flags() {
        TokenizerConfig config = flags(json_text(some_tokens()));
        config.vocab_size = 266 + 10;
        config.tiktoken_num_special_tokens = 10;
        return config;
    }
    TempFolder folder_;
};

Ids encode(const Tokenizer& tokenizer, std::string_view text) {
    Ids ids;
    tokenizer.encode(text, ids);
    return ids;
}

TEST_F(Tiktoken, Base64) {
    std::string out;
    for (const std::string text : {"", "a", "ab", "abc", "abcd", "\xff\x00\x80"}) {
        ASSERT_TRUE(decode_base64(base64(text), out)) << text;
        EXPECT_EQ(out, text);
    }
    for (const char* bad : {"a", "ab=", "a===", "====", "ab=c", "ab c", "ab\n=="})
        EXPECT_FALSE(decode_base64(bad, out)) << bad;
}

TEST_F(Tiktoken, JsonHasItsSpecialTokensInFront) {
    const auto tokenizer = make_tokenizer(json_flags());
    EXPECT_EQ(tokenizer->vocab_size(), 276);
    EXPECT_EQ(tokenizer->bos(), 1);
    EXPECT_EQ(tokenizer->eos(), 2);
    EXPECT_EQ(tokenizer->eod(), 2);
    EXPECT_EQ(encode(*tokenizer, "hello world"), (Ids{10 + 259, 10 + 264}));
    EXPECT_EQ(encode(*tokenizer, "12"), (Ids{10 + '1', 10 + '2'}));  // v1 takes digits one by one
    EXPECT_EQ(encode(*tokenizer, "<s>"), (Ids{10 + '<', 10 + 's', 10 + '>'}));
    EXPECT_EQ(tokenizer->decode(Ids{0, 1, 2, 3, 9, 269}), "<unk><s></s><SPECIAL_3><SPECIAL_9>hello");
    expect_usage_error([&] { (void)tokenizer->decode(Ids{276}); }, {"276"});
    TokenizerConfig named = json_flags();
    named.tiktoken_special_tokens = {"</s>", "<pad>", "<unk>", "<s>"};
    EXPECT_EQ(make_tokenizer(named)->eod(), 0);
    EXPECT_EQ(make_tokenizer(named)->bos(), 3);
}

TEST_F(Tiktoken, OnlyTheFirstEntriesCount) {
    TokenizerConfig config = json_flags();
    config.vocab_size = 262 + 10;  // without " world" and its like
    const auto tokenizer = make_tokenizer(config);
    EXPECT_EQ(encode(*tokenizer, " world"), (Ids{10 + 260, 10 + 261, 10 + 'l', 10 + 'd'}));
    EXPECT_NE(tokenizer->checksum(), make_tokenizer(json_flags())->checksum());
}

TEST_F(Tiktoken, RefusesWhatMegatronAsserts) {
    const auto expect = [&](TokenizerConfig config, std::initializer_list<const char*> parts) {
        expect_usage_error([&] { make_tokenizer(config); }, parts);
    };
    TokenizerConfig config = json_flags();
    config.tiktoken_pattern = "";
    expect(config, {"--tiktoken-pattern"});
    config = json_flags();
    config.tiktoken_pattern = "v3";
    expect(config, {"--tiktoken-pattern v3", "v1"});
    config = json_flags();
    config.vocab_size = 0;  // 131072 then
    expect(config, {"266 tokens"});
    config = json_flags();
    config.tiktoken_special_tokens = {"<unk>", "<s>"};
    expect(config, {"</s>"});
    config.tiktoken_special_tokens = {"<unk>", "<s>", "</s>", "<s>"};
    expect(config, {"<s>", "twice"});
    config = json_flags();
    config.tiktoken_num_special_tokens = 276;
    expect(config, {"--tiktoken-num-special-tokens"});
    auto tokens = some_tokens();
    std::swap(tokens[5], tokens[6]);
    for (const std::string& content :
         {std::string("[{}]"), std::string("[]"), std::string("[1]"), std::string("["), json_text(tokens),
          json_text(some_tokens()) + "x", std::string("[{\"rank\": 1, \"token_bytes\": \"AA==\", \"token_str\": 1}]"),
          std::string("[{\"rank\": 0, \"token_bytes\": \"A\", \"token_str\": 1}]"),
          std::string("[{\"rank\": 0, \"token_bytes\": \"AA==\", \"token_str\": 1, \"x\": 2}]")}) {
        config = flags(content);
        config.vocab_size = 276;
        config.tiktoken_num_special_tokens = 10;
        expect(config, {"file"});
    }
}

TEST_F(Tiktoken, RankFilesHaveTheEndBehindTheirTokens) {
    TokenizerConfig config = flags(rank_text(some_tokens()));
    config.tiktoken_pattern = "llama3";
    const auto tokenizer = make_tokenizer(config);
    EXPECT_EQ(tokenizer->vocab_size(), 267);
    EXPECT_EQ(tokenizer->eod(), 266);
    EXPECT_EQ(encode(*tokenizer, "hello 12"), (Ids{259, ' ', 265}));
    EXPECT_EQ(tokenizer->decode(Ids{259, 266}), "hello<|endoftext|>");
    config.tiktoken_pattern = "";
    expect_usage_error([&] { make_tokenizer(config); }, {"--tiktoken-pattern", "266"});
    for (const std::string content : {"", "AA== 1\n", "AA==\n", "AA== x\n", "AA== 0\nAA== 1\n", "AA== 0 0\n"})
        expect_usage_error([&] { make_tokenizer(flags(content)); }, {"file"});
}

TEST_F(Tiktoken, ReadsTheFileOfOpenAi) {
    const std::string path = std::string(TERA_SOURCE_DIR) + "/../shared/data/tiktoken/cl100k_base.tiktoken.gz";
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
    TokenizerConfig config;
    config.tokenizer_type = "TikTokenizer";
    config.tokenizer_model = path;
    const auto tokenizer = make_tokenizer(config);
    EXPECT_EQ(tokenizer->vocab_size(), 100277);
    EXPECT_EQ(tokenizer->eod(), 100257);
    EXPECT_EQ(encode(*tokenizer, "Hello, World!"), (Ids{9906, 11, 4435, 0}));
}

}  // namespace
}  // namespace tera
