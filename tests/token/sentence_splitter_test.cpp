#include "token/sentence_splitter.h"

#include <gtest/gtest.h>

#include <random>

#include "support/expect_usage_error.h"

namespace tera {
namespace {

using Sentences = std::vector<std::string>;

Sentences split(std::string_view text, const std::string& language = "english", bool keep_newlines = false) {
    std::vector<std::string_view> found;
    SentenceSplitter({language, keep_newlines}).split(text, found);
    return {found.begin(), found.end()};
}

TEST(SentenceSplitter, EndsAtMarksBeforeACapital) {
    EXPECT_EQ(split("One. Two! Three? Four"), (Sentences{"One.", "Two!", "Three?", "Four"}));
    EXPECT_EQ(split("What?! No... Yes!!!"), (Sentences{"What?!", "No...", "Yes!!!"}));
    EXPECT_EQ(split("It is here. 3 came. \u00c9t\u00e9 went."),
              (Sentences{"It is here.", "3 came.", "\u00c9t\u00e9 went."}));
    EXPECT_EQ(split("Wait... what? so it goes on. \u00e9t\u00e9"),
              (Sentences{"Wait... what? so it goes on. \u00e9t\u00e9"}));
    EXPECT_EQ(split("A new line\nis not an end.\nA capital is."),
              (Sentences{"A new line\nis not an end.", "A capital is."}));
}

TEST(SentenceSplitter, DropsWhiteSpaceAround) {
    EXPECT_EQ(split("  One.   Two.  \n"), (Sentences{"One.", "Two."}));
    EXPECT_EQ(split(""), Sentences{});
    EXPECT_EQ(split(" \n\t\u3000 "), Sentences{});
    EXPECT_EQ(split("One.\u00a0Two.\u2003Three."), (Sentences{"One.", "Two.", "Three."}));
}

TEST(SentenceSplitter, DecimalsAddressesAndVersionsStayWhole) {
    EXPECT_EQ(split("Pi is 3.14159 or so. See www.example.org/a.b for v1.2.3 of it."),
              (Sentences{"Pi is 3.14159 or so.", "See www.example.org/a.b for v1.2.3 of it."}));
    EXPECT_EQ(split("1. Introduction to it. It begins.\n2. Methods"),
              (Sentences{"1. Introduction to it.", "It begins.", "2. Methods"}));
    EXPECT_EQ(split("It was in 1999. Then came more."), (Sentences{"It was in 1999.", "Then came more."}));
}

TEST(SentenceSplitter, AbbreviationsAndInitials) {
    EXPECT_EQ(split("Mr. Smith met Dr. J. R. Brown, e.g. Friday. He left."),
              (Sentences{"Mr. Smith met Dr. J. R. Brown, e.g. Friday.", "He left."}));
    EXPECT_EQ(split("Acme Inc. was big. Acme Inc. It was."), (Sentences{"Acme Inc. was big.", "Acme Inc.", "It was."}));
    EXPECT_EQ(split("See No. 5 and Fig. 3. No. I won't."), (Sentences{"See No. 5 and Fig. 3.", "No.", "I won't."}));
    EXPECT_EQ(split("On Jan. 5 it rained. It was Jan. The sun."),
              (Sentences{"On Jan. 5 it rained.", "It was Jan.", "The sun."}));
    EXPECT_EQ(split("The U.S. Government said. He lives in the U.S. He works."),
              (Sentences{"The U.S. Government said.", "He lives in the U.S.", "He works."}));
    EXPECT_EQ(split("At 5 p.m. they ate. At 6 p.m. They slept."),
              (Sentences{"At 5 p.m. they ate.", "At 6 p.m.", "They slept."}));
    EXPECT_EQ(split("(Mr. Smith) and \"Dr. Who\". End."), (Sentences{"(Mr. Smith) and \"Dr. Who\".", "End."}));
}

TEST(SentenceSplitter, QuotesAndBrackets) {
    EXPECT_EQ(split("He said \"Go.\" She went. (It was late.) They slept."),
              (Sentences{"He said \"Go.\"", "She went.", "(It was late.)", "They slept."}));
    EXPECT_EQ(split("\u201cNo!\u201d he said. \u201cYes?\u201d \u201cWell.\u201d"),
              (Sentences{"\u201cNo!\u201d he said.", "\u201cYes?\u201d", "\u201cWell.\u201d"}));
    EXPECT_EQ(split("Er ging. \u201eHalt!\u201c Dann \u00abNein.\u00bb Ja.", "german"),
              (Sentences{"Er ging.", "\u201eHalt!\u201c", "Dann \u00abNein.\u00bb", "Ja."}));
}

TEST(SentenceSplitter, OtherScripts) {
    EXPECT_EQ(
        split("\u4f60\u597d\u3002\u518d\u89c1\uff01\u300c\u771f\u7684\uff1f\u300d\u662f\u3002"),
        (Sentences{"\u4f60\u597d\u3002", "\u518d\u89c1\uff01", "\u300c\u771f\u7684\uff1f\u300d", "\u662f\u3002"}));
    EXPECT_EQ(
        split("\u0928\u092e\u0938\u094d\u0924\u0947\u0964 \u0927\u0928\u094d\u092f\u0935\u093e\u0926\u0964"),
        (Sentences{"\u0928\u092e\u0938\u094d\u0924\u0947\u0964", "\u0927\u0928\u094d\u092f\u0935\u093e\u0926\u0964"}));
    EXPECT_EQ(split("\u0645\u0631\u062d\u0628\u0627\u061f \u0646\u0639\u0645."),
              (Sentences{"\u0645\u0631\u062d\u0628\u0627\u061f", "\u0646\u0639\u0645."}));
    EXPECT_EQ(split("\u041f\u0440\u0438\u0432\u0435\u0442. \u041f\u043e\u043a\u0430.", "russian"),
              (Sentences{"\u041f\u0440\u0438\u0432\u0435\u0442.", "\u041f\u043e\u043a\u0430."}));
    EXPECT_EQ(split("Well\u2026 Yes\u2026 no."), (Sentences{"Well\u2026", "Yes\u2026 no."}));
}

TEST(SentenceSplitter, BlankLinesEndSentences) {
    EXPECT_EQ(split("A heading\n\nThe text. It goes\non.\n \t\nmore"),
              (Sentences{"A heading", "The text.", "It goes\non.", "more"}));
    EXPECT_EQ(split("Dr.\n\nBrown"), (Sentences{"Dr.", "Brown"}));
}

TEST(SentenceSplitter, Languages) {
    EXPECT_EQ(split("Am 3. Oktober kam Hr. Meier, z.B. um zwei. Er ging.", "german"),
              (Sentences{"Am 3. Oktober kam Hr. Meier, z.B. um zwei.", "Er ging."}));
    EXPECT_EQ(split("Le 3. Mme. Dupont vient. Elle part.", "french"),
              (Sentences{"Le 3.", "Mme. Dupont vient.", "Elle part."}));
    EXPECT_EQ(split("El Sr. Garc\u00eda vino. Se fue.", "spanish"), (Sentences{"El Sr. Garc\u00eda vino.", "Se fue."}));
    EXPECT_GE(sentence_languages().size(), 17u);
    for (const std::string& language : sentence_languages())
        EXPECT_EQ(split("Aa. Bb.", language).size(), 2u) << language;
    expect_usage_error([] { split("a", "klingon"); }, {"--lang klingon", "english", "german"});
}

TEST(SentenceSplitter, KeptWhiteSpaceMakesUpTheText) {
    EXPECT_EQ(split("  One.  Two.\n\nThree ", "english", true), (Sentences{"  One.  ", "Two.\n\n", "Three "}));
    std::mt19937 random(3);
    const Sentences parts = {"a",      "B",  ".",      "!",  "?", " ", "\n",     "\n\n", "\u3002",
                             "\u2026", "\"", "\u201d", "Mr", "5", "(", "\u00e9", "\xff", "\xe3\x80"};
    for (int n = 0; n < 3000; ++n) {
        std::string text;
        for (unsigned k = random() % 30; k > 0; --k) text += parts[random() % parts.size()];
        std::string joined;
        for (const std::string& sentence : split(text, "english", true)) {
            EXPECT_FALSE(sentence.empty());
            joined += sentence;
        }
        EXPECT_EQ(joined, text);
        std::string squeezed, expected;
        for (const std::string& sentence : split(text))
            for (const char c : sentence)
                if (c != ' ' && c != '\n') squeezed += c;
        for (const char c : text)
            if (c != ' ' && c != '\n') expected += c;
        EXPECT_EQ(squeezed, expected) << text;  // nothing but white space is dropped
    }
}

}  // namespace
}  // namespace tera
