#include "token/bpe_files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/expect_usage_error.h"
#include "support/temp_folder.h"
#include "token/byte_level.h"

namespace tera {
namespace {

TEST(VocabJson, TokensGoToTheirIds) {
    const BpeVocab vocab = parse_vocab_json(R"( {"b": 1, "\u0120a": 0, "<|endoftext|>": 2} )", "v");
    EXPECT_EQ(vocab.token_of_id, (std::vector<std::string>{"\u0120a", "b", "<|endoftext|>"}));
}

TEST(VocabJson, BadFilesAreNamed) {
    const auto refuse = [](std::string_view text, std::initializer_list<const char*> parts) {
        expect_usage_error([&] { parse_vocab_json(text, "my/vocab.json"); }, parts);
    };
    refuse("", {"my/vocab.json", "byte 0"});
    refuse("{}", {"my/vocab.json", "empty"});
    refuse("[1, 2]", {"my/vocab.json", "object"});
    refuse(R"({"a": 0,})", {"byte 8"});
    refuse(R"({"a": 0)", {"text ends"});
    refuse(R"({"a": 0} x)", {"extra data"});
    refuse(R"({"a": 0, "b": 0})", {"id 0", "b"});
    refuse(R"({"a": 0, "a": 1})", {"twice", "a"});
    refuse(R"({"a": 0, "b": 2})", {"\"b\"", "id 2", "0 to 1"});
    refuse(R"({"a": -1})", {"id -1"});
    refuse(R"({"a": 0.5})", {"integer"});
    refuse(R"({"a": "0"})", {"my/vocab.json"});
    refuse(R"({"a": 99999999999999999999})", {"integer"});
    refuse(R"({"\ud800": 0})", {"surrogate"});
    refuse("{\"\xff\": 0}", {"byte 2", "UTF-8"});
    refuse("#version: 0.2\na b\n", {"vocab.json is one object"});
}

TEST(Merges, MegatronsReadingRule) {
    const BpeMerges merges = parse_merges("#version: 0.2\na b\n\u0120 ab\r\nx  y\n", "m");
    using Pairs = std::vector<std::pair<std::string, std::string>>;
    EXPECT_EQ(merges.pairs, (Pairs{{"a", "b"}, {"\u0120", "ab"}, {"x", "y"}}));
    EXPECT_TRUE(merges.warnings.empty());
    EXPECT_TRUE(parse_merges("#version: 0.2\n", "m").pairs.empty());
}

TEST(Merges, OtherFilesAreNotMerges) {
    for (const char* text : {"", "\n", "{\"a\": 0, \"b\": 1}", "{\n  \"a\": 0,\n  \"b\": 1\n}", "a b\n",
                             "{\n  \"version\": \"1.0\",\n  \"truncation\": null\n}\n"})
        expect_usage_error([&] { parse_merges(text, "m.txt"); }, {"m.txt", "one pair of tokens a line", "vocabulary?"});
    EXPECT_EQ(parse_merges("{ }\na b\n", "m").pairs.size(), 1u);  // no header, but merges
}

TEST(Merges, WhatTheRuleLosesIsSaid) {
    // The first line is dropped whatever it holds, and so is what follows the last newline.
    const BpeMerges merges = parse_merges("a b\nc d\ne f", "m.txt");
    ASSERT_EQ(merges.pairs.size(), 1u);
    EXPECT_EQ(merges.pairs[0].first, "c");
    ASSERT_EQ(merges.warnings.size(), 2u);
    EXPECT_NE(merges.warnings[0].find("m.txt: line 1"), std::string::npos);
    EXPECT_NE(merges.warnings[1].find("m.txt: line 3"), std::string::npos);
}

TEST(Merges, BadLinesAreNamed) {
    const auto refuse = [](std::string_view text, std::initializer_list<const char*> parts) {
        expect_usage_error([&] { parse_merges(text, "m.txt"); }, parts);
    };
    refuse("#version: 0.2\na b\nc\n", {"m.txt", "line 3", "two symbols, found 1"});
    refuse("#version: 0.2\na b c\n", {"line 2", "found 3"});
    refuse("#version: 0.2\n\na b\n", {"line 2", "found 0"});
    refuse("#version: 0.2\r\na b\r\rc d\r\n", {"line 3", "found 0"});
    refuse("#version: 0.2\na \xff\n", {"byte 16", "UTF-8"});
    refuse("#version: 0.2\n" + std::string(100000, 'x') + "\n", {"line 2", "..."});
}

TEST(BpeFiles, WhatIsWrittenReadsBack) {
    const BpeVocab vocab{{"\"", "\\", "\u0120", "\u010a", "<|endoftext|>"}};
    BpeMerges merges;
    merges.pairs = {{"\u0120", "\""}, {"\\", "\\"}};
    EXPECT_EQ(parse_vocab_json(vocab_json_text(vocab), "v").token_of_id, vocab.token_of_id);
    EXPECT_EQ(parse_merges(merges_text(merges), "m").pairs, merges.pairs);

    const auto json = nlohmann::json::parse(tokenizer_json_text(vocab, merges));
    EXPECT_EQ(json["model"]["vocab"]["<|endoftext|>"], 4);
    EXPECT_EQ(json["model"]["merges"][1][0], "\\");
    EXPECT_EQ(json["added_tokens"][0]["id"], 4);
    EXPECT_EQ(json["pre_tokenizer"]["add_prefix_space"], false);
    EXPECT_EQ(nlohmann::json::parse(tokenizer_config_text())["eos_token"], "<|endoftext|>");
}

TEST(BpeFiles, UnreadableFilesAreNamed) {
    const TempFolder folder;
    expect_usage_error([&] { read_token_file(folder / "none.json"); }, {"none.json", "cannot be opened"});
    expect_usage_error([&] { read_token_file(folder.path()); }, {folder.path().c_str()});
}

TEST(ByteLevel, AlphabetIsOneToOne) {
    EXPECT_EQ(to_printable(" "), "\u0120");
    EXPECT_EQ(to_printable("\n"), "\u010a");
    EXPECT_EQ(to_printable(std::string(1, '\0')), "\u0100");
    EXPECT_EQ(to_printable("\xad"), "\u0143");  // the last of the 68
    EXPECT_EQ(to_printable("A~\xa1\xff"), "A~\u00a1\u00ff");
    std::string all;
    for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
    EXPECT_EQ(from_printable(to_printable(all)), all);
    EXPECT_EQ(code_point_to_byte(0x144), -1);
    EXPECT_EQ(from_printable("\u20ac"), "\u20ac");
}

}  // namespace
}  // namespace tera
