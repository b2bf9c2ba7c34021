#include "token/piece_scanner.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "token/char_blocks.h"

namespace tera {
namespace {

using Lengths = std::vector<std::size_t>;

struct NamedPattern {
    const char* name;
    PretokenPattern pattern;
};
constexpr std::array<NamedPattern, 8> patterns = {{
    {"gpt2", PretokenPattern::gpt2},
    {"cl100k", PretokenPattern::cl100k},
    {"llama3", PretokenPattern::llama3},
    {"qwen2", PretokenPattern::qwen2},
    {"qwen3_5", PretokenPattern::qwen3_5},
    {"tekken_v1", PretokenPattern::tekken_v1},
    {"tekken_v2", PretokenPattern::tekken_v2},
    {"o200k", PretokenPattern::o200k},
}};

Lengths one_by_one(PretokenPattern pattern, std::string_view text) {
    Lengths lengths;
    const char* end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
        const char* stop = piece_end(pattern, p, end);
        lengths.push_back(static_cast<std::size_t>(stop - p));
        p = stop;
    }
    return lengths;
}

Lengths scanned(PretokenPattern pattern, std::string_view text) {
    // The text alone in its memory, so that sanitizers see reads behind it.
    const std::vector<char> bytes(text.begin(), text.end());
    PieceScanner scanner(pattern, {bytes.data(), bytes.size()});
    std::vector<std::uint32_t> ends(PieceScanner::least_room);
    Lengths lengths;
    while (const std::size_t count = scanner.next(ends.data(), ends.size())) {
        std::uint32_t begin = 0;
        for (std::size_t i = 0; i < count; ++i) {
            lengths.push_back(ends[i] - begin);
            begin = ends[i];
        }
    }
    return lengths;
}

/// The file that tests/golden/make_pretokenize_golden.py writes; TERA_PRETOKENIZE_CASES names a larger one.
std::string golden_file() {
    const char* larger = std::getenv("TERA_PRETOKENIZE_CASES");
    return larger ? larger : TERA_SOURCE_DIR "/tests/golden/pretokenize/cases.jsonl";
}

TEST(Pretokenize, CutsAsTokenizersAndTiktoken) {
    std::ifstream in(golden_file());
    ASSERT_TRUE(in) << golden_file();
    std::string line;
    std::getline(in, line);
    const auto regexes = nlohmann::json::parse(line).at("regexes");
    for (const auto& [name, pattern] : patterns)
        for (const auto& regex : regexes.at(name)) EXPECT_EQ(pretoken_pattern_of(regex.get<std::string>()), pattern);
    int cases = 0;
    for (; std::getline(in, line); ++cases) {
        const auto golden = nlohmann::json::parse(line);
        const auto text = golden.at("text").get<std::string>();
        for (const auto& [name, pattern] : patterns) {
            const auto expected = golden.at("pieces").at(name).get<Lengths>();
            ASSERT_EQ(one_by_one(pattern, text), expected) << name << ": " << golden.at("text");
            ASSERT_EQ(scanned(pattern, text), expected) << name << ": " << golden.at("text");
        }
    }
    EXPECT_GE(cases, 300);
}

TEST(Pretokenize, KnowsNoOtherRegex) {
    EXPECT_EQ(pretoken_pattern_of(""), std::nullopt);
    EXPECT_EQ(pretoken_pattern_of(R"(\p{L}+)"), std::nullopt);
    EXPECT_EQ(pretoken_pattern_of(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s)"),
              std::nullopt);
}

/// Characters of every class, sequences that matter together, and bytes that are not UTF-8.
const std::vector<std::string>& units() {
    static const std::vector<std::string> list = {"a",
                                                  "b",
                                                  "Z",
                                                  "Y",
                                                  "1",
                                                  "2",
                                                  " ",
                                                  "  ",
                                                  "\t",
                                                  "\n",
                                                  "\r\n",
                                                  "'",
                                                  "/",
                                                  ".",
                                                  "!",
                                                  "-",
                                                  "\u00a0",
                                                  "\u3000",
                                                  "\u00e9",
                                                  "\u00c9",
                                                  "\u017f",
                                                  "\u01c5",
                                                  "\u02b0",
                                                  "\u4e2d",
                                                  "\u05d0",
                                                  "\u0301",
                                                  "\u0663",
                                                  "\u00bd",
                                                  "\u094d",
                                                  "'s",
                                                  "'S",
                                                  "'re",
                                                  "'LL",
                                                  "'\u017f",
                                                  "the",
                                                  "THE",
                                                  "word",
                                                  "\U0001f600",
                                                  "\U00010400",
                                                  "\u201c",
                                                  "\u2026",
                                                  "\xff",
                                                  "\xe4\xb8",
                                                  "\xc3",
                                                  "\xed\xa0\x80",
                                                  "\xf4\x90\x80\x80",
                                                  std::string(1, '\0')};
    return list;
}

std::string random_text(std::mt19937& random, std::size_t units_wanted) {
    std::string text;
    // Few kinds at a time, so that runs are long enough to matter.
    std::vector<std::string> kinds;
    for (std::size_t i = 0; i < 2 + random() % 8; ++i) kinds.push_back(units()[random() % units().size()]);
    for (std::size_t i = 0; i < units_wanted; ++i)
        text += random() % 10 == 0 ? units()[random() % units().size()] : kinds[random() % kinds.size()];
    return text;
}

TEST(PieceScanner, CutsAsOneByOne) {
    std::mt19937 random(11);
    for (int round = 0; round < 6000; ++round) {
        const std::string text = random_text(random, random() % 150);
        for (const auto& [name, pattern] : patterns)
            ASSERT_EQ(scanned(pattern, text), one_by_one(pattern, text))
                << name << ": " << nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    }
}

TEST(PieceScanner, CutsAsOneByOneWhereverABlockBegins) {
    std::mt19937 random(12);
    for (int round = 0; round < 40; ++round) {
        const std::string text = random_text(random, 60);
        for (std::size_t shift = 0; shift < 2 * CharBlock::size; ++shift) {
            const std::string shifted = std::string(shift, round % 2 ? 'x' : ' ') + text;
            for (const auto& [name, pattern] : patterns)
                ASSERT_EQ(scanned(pattern, shifted), one_by_one(pattern, shifted)) << name << ", shift " << shift;
        }
    }
}

TEST(PieceScanner, TakesSeveralCallsForMuchText) {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += i % 3 ? " word" : " 7!";
    for (const auto& [name, pattern] : patterns) EXPECT_EQ(scanned(pattern, text), one_by_one(pattern, text)) << name;
}

}  // namespace
}  // namespace tera
