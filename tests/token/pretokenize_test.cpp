#include "token/pretokenize.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "token/utf8.h"

namespace tera {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(std::string_view text) {
    Pieces pieces;
    const char* end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
        const char* stop = piece_end(PretokenPattern::gpt2, p, end);
        pieces.emplace_back(p, stop);
        p = stop;
    }
    return pieces;
}

// Expectations are what Python's regex module gives for the pattern.
TEST(Gpt2Pattern, WordsNumbersAndPunctuation) {
    EXPECT_EQ(pieces_of("Hello world"), (Pieces{"Hello", " world"}));
    EXPECT_EQ(pieces_of("abc123 45.6"), (Pieces{"abc", "123", " 45", ".", "6"}));
    EXPECT_EQ(pieces_of("a, b!? c"), (Pieces{"a", ",", " b", "!?", " c"}));
    EXPECT_EQ(pieces_of("x_y"), (Pieces{"x", "_", "y"}));
    EXPECT_EQ(pieces_of(""), Pieces{});
}

TEST(Gpt2Pattern, Contractions) {
    EXPECT_EQ(pieces_of("it's we're I'll"), (Pieces{"it", "'s", " we", "'re", " I", "'ll"}));
    EXPECT_EQ(pieces_of("IT'S"), (Pieces{"IT", "'", "S"}));  // case-sensitive
    EXPECT_EQ(pieces_of("'sick"), (Pieces{"'s", "ick"}));
    EXPECT_EQ(pieces_of(" 's"), (Pieces{" '", "s"}));  // a blank takes the apostrophe
    EXPECT_EQ(pieces_of("''s"), (Pieces{"''", "s"}));
    EXPECT_EQ(pieces_of("'"), (Pieces{"'"}));
    EXPECT_EQ(pieces_of("'r"), (Pieces{"'", "r"}));
    EXPECT_EQ(pieces_of("'lx"), (Pieces{"'", "lx"}));
}

TEST(Gpt2Pattern, BlanksGiveTheirLastToTheNextPiece) {
    EXPECT_EQ(pieces_of("a  b"), (Pieces{"a", " ", " b"}));
    EXPECT_EQ(pieces_of("a   b"), (Pieces{"a", "  ", " b"}));
    EXPECT_EQ(pieces_of("a \n b"), (Pieces{"a", " \n", " b"}));
    EXPECT_EQ(pieces_of("a\n\nb"), (Pieces{"a", "\n", "\n", "b"}));
    EXPECT_EQ(pieces_of("a \nb"), (Pieces{"a", " ", "\n", "b"}));
    EXPECT_EQ(pieces_of("a  "), (Pieces{"a", "  "}));
    EXPECT_EQ(pieces_of(" "), (Pieces{" "}));
    EXPECT_EQ(pieces_of("\t\tx"), (Pieces{"\t", "\t", "x"}));
    EXPECT_EQ(pieces_of(" \u00a0 x"), (Pieces{" \u00a0", " x"}));
    EXPECT_EQ(pieces_of("\u3000x"), (Pieces{"\u3000", "x"}));
    EXPECT_EQ(pieces_of("\x1c\x1cx"), (Pieces{"\x1c\x1c", "x"}));  // not White_Space
}

TEST(Gpt2Pattern, Scripts) {
    EXPECT_EQ(pieces_of("na\u00efve \u041f\u0440\u0438"), (Pieces{"na\u00efve", " \u041f\u0440\u0438"}));
    EXPECT_EQ(pieces_of("\u4f60\u597d\u3002x"), (Pieces{"\u4f60\u597d", "\u3002", "x"}));
    EXPECT_EQ(pieces_of("\u0663\u00bd\u2167"), (Pieces{"\u0663\u00bd\u2167"}));  // \p{N}
    EXPECT_EQ(pieces_of("e\u0301a"), (Pieces{"e", "\u0301", "a"}));              // a mark is no letter
    EXPECT_EQ(pieces_of("\U0001f98a\u200d x"), (Pieces{"\U0001f98a\u200d", " x"}));
}

TEST(Gpt2Pattern, InvalidBytesAreCharactersOfTheirOwn) {
    EXPECT_EQ(pieces_of("a\xff\xfe!b"), (Pieces{"a", "\xff\xfe!", "b"}));
    EXPECT_EQ(pieces_of("\xc3"), (Pieces{"\xc3"}));
    EXPECT_EQ(pieces_of("x\xe4\xbdy"), (Pieces{"x", "\xe4\xbd", "y"}));      // cut short
    EXPECT_EQ(pieces_of(" \xed\xa0\x80z"), (Pieces{" \xed\xa0\x80", "z"}));  // a surrogate
}

TEST(Gpt2Pattern, PiecesAlwaysMakeUpTheText) {
    std::mt19937 random(3);
    const std::string alphabet = "aZ9 '\n\t.\xc3\xa9\xe3\x80\x80\xff\xf0\x9f\x98\x80srevmdl";
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (int i = 0; i < 30; ++i) text += alphabet[random() % alphabet.size()];
        std::string joined;
        for (const std::string& piece : pieces_of(text)) {
            ASSERT_FALSE(piece.empty());
            joined += piece;
        }
        ASSERT_EQ(joined, text);
    }
}

TEST(Unicode, Categories) {
    EXPECT_EQ(general_category('A'), Category::lu);
    EXPECT_EQ(general_category('z'), Category::ll);
    EXPECT_EQ(general_category('5'), Category::nd);
    EXPECT_EQ(general_category('_'), Category::pc);
    EXPECT_EQ(general_category(0x4E00), Category::lo);
    EXPECT_EQ(general_category(0x9FFF), Category::lo);
    EXPECT_EQ(general_category(0x0301), Category::mn);
    EXPECT_EQ(general_category(0x2028), Category::zl);
    EXPECT_EQ(general_category(0xD800), Category::cs);
    EXPECT_EQ(general_category(0x10FFFF), Category::cn);
    EXPECT_EQ(general_category(0x110000), Category::cn);
    EXPECT_EQ(general_category(0), Category::cc);
}

TEST(Unicode, TableAgreesWithTheDefinitions) {
    int spaces = 0;
    for (std::uint32_t c = 0; c < 0x110000; ++c) {
        const Category category = general_category(c);
        const auto among = [category](Category first, Category last) { return category >= first && category <= last; };
        const CharClass expected = is_white_space(c)                                      ? CharClass::space
                                   : category == Category::lu || category == Category::lt ? CharClass::upper
                                   : category == Category::ll                             ? CharClass::lower
                                   : among(Category::lm, Category::lo)                    ? CharClass::caseless
                                   : among(Category::mn, Category::me)                    ? CharClass::mark
                                   : among(Category::nd, Category::no)                    ? CharClass::number
                                                                                          : CharClass::other;
        ASSERT_EQ(char_class_table()(c), expected) << c;
        spaces += is_white_space(c);
    }
    EXPECT_EQ(spaces, 25);
}

TEST(Utf8, DecodesAndRefuses) {
    const auto decode = [](std::string_view s) { return decode_utf8(s.data(), s.data() + s.size()); };
    EXPECT_EQ(decode("\xf0\x9f\x98\x80").value, 0x1F600u);
    EXPECT_EQ(decode("\xf4\x8f\xbf\xbf").value, 0x10FFFFu);
    for (const char* bad : {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                            "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80", "\xe2\x82", "\xf0\x9f\x98"}) {
        EXPECT_EQ(decode(bad).value, CodePoint::invalid) << bad;
        EXPECT_EQ(decode(bad).bytes, 1u);
    }
    for (std::uint32_t c = 0; c < 0x110000; c += 7) {
        if (c >= 0xD800 && c < 0xE000) continue;
        std::string text;
        append_utf8(text, c);
        ASSERT_EQ(decode(text).value, c);
        ASSERT_EQ(decode(text).bytes, text.size());
    }
}

/// Character by character, as decode_utf8() sees it.
std::size_t first_invalid(std::string_view text) {
    const char* end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
        const CodePoint code = decode_utf8(p, end);
        if (code.value == CodePoint::invalid) return static_cast<std::size_t>(p - text.data());
        p += code.bytes;
    }
    return std::string_view::npos;
}

TEST(Utf8, FindsTheFirstInvalidByteWhereverItIs) {
    std::mt19937 random(5);
    const std::vector<std::string> good = {"a",          "word ",  "\u00e9", "\u4e2d",
                                           "\U0001f600", "\ud7ff", "\ue000", "\U0010ffff"};
    const std::vector<std::string> bad = {"\x80",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x9f\xbf",
                                          "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                                          "\xff",         "\xe4\xb8",         "\xf0\x9f\x98",     "\xc3"};
    for (int round = 0; round < 20000; ++round) {
        std::string text;
        const std::size_t wanted = random() % 200;
        while (text.size() < wanted) text += good[random() % good.size()];
        if (round % 2) {
            text += bad[random() % bad.size()];
            for (std::size_t more = random() % 100; more > 0; --more) text += good[random() % good.size()];
        }
        const std::vector<char> alone(text.begin(), text.end());  // so that sanitizers see reads behind it
        ASSERT_EQ(find_invalid_utf8({alone.data(), alone.size()}), first_invalid(text)) << "round " << round;
    }
}

// Expectations: bytes.decode("utf-8", errors="replace") of Python.
TEST(Utf8, ReplacesInvalidBytes) {
    EXPECT_EQ(replace_invalid_utf8("a\xff"
                                   "b"),
              "a\ufffd"
              "b");
    EXPECT_EQ(replace_invalid_utf8("\xf0\x9f\x98"), "\ufffd");
    EXPECT_EQ(replace_invalid_utf8("\xe2\x82\xe2\x82\xac"), "\ufffd\u20ac");
    EXPECT_EQ(replace_invalid_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");
    EXPECT_EQ(replace_invalid_utf8("\xf0\x80\x80"), "\ufffd\ufffd\ufffd");
    EXPECT_EQ(replace_invalid_utf8("\xc3("), "\ufffd(");
    EXPECT_EQ(replace_invalid_utf8("fine \u00e9"), "fine \u00e9");
    EXPECT_EQ(find_invalid_utf8("12345678\u00e99\xff"), 11u);
    EXPECT_EQ(find_invalid_utf8("12345678901234567"), std::string_view::npos);
    EXPECT_EQ(count_utf8("a\u00e9\U0001f600"), 3u);
    std::string longer;  // in blocks, at every place of a block
    for (std::size_t count = 1; count <= 100; ++count) {
        longer += count % 3 == 0 ? "a" : count % 3 == 1 ? "\u00e9" : "\U0001f600";
        EXPECT_EQ(count_utf8(longer), count);
    }
}

}  // namespace
}  // namespace tera
