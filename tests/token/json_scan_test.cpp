#include "token/json_scan.h"

#include <gtest/gtest.h>

#include <random>

#include "token/utf8.h"

namespace tera {
namespace {

bool accepts(const std::string& text) {
    try {
        JsonScanner json(text);
        json.skip_value();
        json.expect_end();
        return true;
    } catch (const JsonSyntaxError&) {
        return false;
    }
}

// What json.loads of Python accepts and refuses.
TEST(JsonScan, AcceptsWhatPythonAccepts) {
    for (const char* text : {"null",
                             "true",
                             " false ",
                             "0",
                             "-0",
                             "12.5e+3",
                             "1E5",
                             "NaN",
                             "Infinity",
                             "-Infinity",
                             "\"\"",
                             "\"\\u00e9\\n\"",
                             "\"\\ud800\"",
                             "[]",
                             "[ ]",
                             "{}",
                             "{ }",
                             "[1,[2,{\"a\":[]}],\"x\"]",
                             "{\"a\":1,\"a\":2}",
                             "\t[\r\n1\n]",
                             "\"tab \\t / \\/ \x7f\"",
                             "[[[[[[]]]]]]",
                             "{\"a\":{\"b\":{}}}"})
        EXPECT_TRUE(accepts(text)) << text;
}

TEST(JsonScan, RefusesWhatPythonRefuses) {
    for (const char* text :
         {"",           " ",        "nul",   "True",     "01",  "1.",  ".5",      "+1",          "1e",
          "-",          "--1",      "-NaN",  "infinity", "\"",  "\"a", "\"\\x\"", "\"\\u12g4\"", "\"\\u12\"",
          "\"a\nb\"",   "\"a\tb\"", "[1,]",  "[1 2]",    "[",   "]",   "[1",      "{\"a\"}",     "{\"a\":}",
          "{\"a\":1,}", "{a:1}",    "{1:2}", "{\"a\":1", "{,}", "[,]", "1 2",     "{}{}",        "\xEF\xBB\xBF{}",
          "'a'",        "\"\\",     "[}"})
        EXPECT_FALSE(accepts(text)) << text;
}

TEST(JsonScan, DeepNestingIsAnErrorNotACrash) {
    EXPECT_TRUE(accepts(std::string(1000, '[') + std::string(1000, ']')));
    EXPECT_FALSE(accepts(std::string(1001, '[') + std::string(1001, ']')));
    EXPECT_FALSE(accepts(std::string(1000000, '[')));
}

TEST(JsonScan, Strings) {
    const auto read = [](const std::string& text, bool whole = true) {
        JsonScanner json(text);
        std::string out;
        EXPECT_EQ(json.read_string(out), whole) << text;
        json.expect_end();
        return out;
    };
    EXPECT_EQ(read(R"("a\"b\\c\/d\b\f\n\r\t")"), "a\"b\\c/d\b\f\n\r\t");
    EXPECT_EQ(read(R"("\u0041\u00e9\u20AC\ud83d\ude00")"), "A\u00e9\u20ac\U0001f600");
    EXPECT_EQ(read(R"("long enough to be scanned by words \u00e9 and on")"),
              "long enough to be scanned by words \u00e9 and on");
    EXPECT_EQ(read(R"("\u0000")"), std::string(1, '\0'));
    // A high surrogate and something that is no low one: both stay, and the first is reported.
    EXPECT_EQ(read(R"("\ud83dx")", false), "\xED\xA0\xBDx");
    EXPECT_EQ(read(R"("\ud83d\ud83d\ude00")", false), "\xED\xA0\xBD\U0001f600");
    EXPECT_EQ(read(R"("\ude00")", false), "\xED\xB8\x80");
    EXPECT_EQ(read("\"\U0001f600\""), "\U0001f600");
}

TEST(JsonScan, EveryControlCharacterInEveryPlaceIsSeen) {
    for (int c = 0; c < 0x20; ++c)
        for (std::size_t at = 0; at < 20; ++at) {
            std::string body(20, 'x');
            body[at] = static_cast<char>(c);
            EXPECT_FALSE(accepts("\"" + body + "\"")) << c << " at " << at;
        }
    for (int c = 0x80; c < 0x100; ++c) EXPECT_TRUE(accepts("\"0123456" + std::string(9, static_cast<char>(c)) + "\""));
}

TEST(JsonScan, Integers) {
    const auto read = [](std::string_view text) { return JsonScanner(text).read_integer(); };
    EXPECT_EQ(read(" 42"), 42);
    EXPECT_EQ(read("-7"), -7);
    for (const char* bad : {"1.0", "1e3", "99999999999999999999", "x", "NaN", "\"1\""})
        EXPECT_THROW(read(bad), JsonSyntaxError) << bad;
}

TEST(JsonScan, ErrorsCarryTheirPlace) {
    try {
        JsonScanner json("{\"a\": [1, x]}");
        json.skip_value();
        FAIL();
    } catch (const JsonSyntaxError& error) {
        EXPECT_EQ(error.offset(), 10u);
    }
}

TEST(JsonScan, WrittenStringsReadBack) {
    std::string all;
    for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
    all += "\u00e9\U0001f600";
    const std::string text = json_string(all);
    JsonScanner json(text);
    std::string out;
    EXPECT_TRUE(json.read_string(out));
    EXPECT_EQ(out, all);
}

TEST(JsonScan, StringsOfEveryLengthWithASpecialCharacterAnywhere) {
    for (std::size_t length = 0; length < 150; ++length) {
        for (std::size_t at = 0; at <= length; at += 7) {
            std::string plain(length, 'x');
            std::string text = plain;
            text.insert(at, "\\n");
            plain.insert(at, "\n");
            const std::string quoted = '"' + text + '"';
            const std::vector<char> alone(quoted.begin(), quoted.end());
            JsonScanner json({alone.data(), alone.size()});
            std::string out;
            ASSERT_TRUE(json.read_string(out));
            ASSERT_EQ(out, plain);
            std::string control = quoted;
            control[at + 1] = '\x1f';
            JsonScanner broken(control);
            EXPECT_THROW(broken.read_string(out), JsonSyntaxError) << length << " " << at;
        }
    }
}

TEST(JsonScan, LongStringsOfAllEscapes) {
    struct Part {
        const char *written, *read;
    };
    constexpr Part parts[] = {{"\\n", "\n"},
                              {"\\t", "\t"},
                              {"\\\\", "\\"},
                              {"\\\"", "\""},
                              {"\\/", "/"},
                              {"\\r", "\r"},
                              {"\\b\\f", "\b\f"},
                              {"\\u4e2d", "\u4e2d"},
                              {"\\u0041", "A"},
                              {"\u00e9", "\u00e9"},
                              {"\\ud83d\\ude00", "\U0001f600"},
                              {"a longer run of plain characters, so that blocks end everywhere ", nullptr}};
    std::mt19937 random(1);
    std::string out;
    for (int round = 0; round < 2000; ++round) {
        std::string text = "\"", expected;
        for (unsigned n = random() % 60; n > 0; --n) {
            const Part& part = parts[random() % std::size(parts)];
            const std::string_view written = part.written;
            const std::size_t length = part.read ? written.size() : random() % written.size();
            text += written.substr(0, length);
            expected += part.read ? std::string_view(part.read) : written.substr(0, length);
        }
        text += "\"";
        const std::vector<char> alone(text.begin(), text.end());
        JsonScanner json({alone.data(), alone.size()});
        ASSERT_TRUE(json.read_string(out));
        ASSERT_EQ(out, expected) << text;
        json.expect_end();
    }
}

}  // namespace
}  // namespace tera
