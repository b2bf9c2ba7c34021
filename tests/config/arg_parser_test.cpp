#include "config/arg_parser.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "core/error.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

using Words = std::vector<std::string>;

ArgParser example() {
    ArgParser parser("prog", "An example.");
    parser.positional("input");
    parser.option("lr", ArgType::real).defaults("0.5").help("rate");
    parser.option("vocab-file", ArgType::text).help("file");
    parser.option("vocab-size", ArgType::integer);
    parser.option("merge-file", ArgType::text).alias("merges");
    parser.option("data-path", ArgType::text).values(ArgCount::any());
    parser.option("ranks", ArgType::integer).values(ArgCount::one_or_more());
    parser.option("pair", ArgType::integer).values(ArgCount::exactly(2));
    parser.option("style", ArgType::text).choices({"linear", "cosine"});
    parser.flag("swiglu").help("gated");
    return parser;
}

ParsedArgs parse(const Words& words) { return example().parse(words); }

TEST(ArgParser, ReadsBothSpellings) {
    const ParsedArgs args = parse({"in", "--lr=16e-3", "--vocab-size", "300_000_000", "--swiglu"});
    EXPECT_EQ(args.text("input"), "in");
    EXPECT_EQ(args.real("lr"), 16e-3);
    EXPECT_EQ(args.integer("vocab_size"), 300'000'000);
    EXPECT_TRUE(args.boolean("swiglu"));
    EXPECT_FALSE(args.given("vocab_file"));
    EXPECT_EQ(parse({"in", "--lr", ".01"}).real("lr"), 0.01);
    EXPECT_EQ(parse({"in"}).real("lr"), 0.5);
    EXPECT_EQ(parse({"in", "--vocab-file=a=b"}).text("vocab_file"), "a=b");
    EXPECT_EQ(parse({"in", "--vocab-file="}).text("vocab_file"), "");
}

TEST(ArgParser, BlanksInValues) {
    EXPECT_EQ(parse({"in", "--vocab-file=a folder/v"}).text("vocab_file"), "a folder/v");
    EXPECT_EQ(parse({"in", "--vocab-f=949, 50, 1"}).text("vocab_file"), "949, 50, 1");
    EXPECT_EQ(parse({"in", "--vocab-file", "- a dash=1"}).text("vocab_file"), "- a dash=1");
    EXPECT_EQ(parse({"in", "--vocab-file", "--two words = one"}).text("vocab_file"), "--two words = one");
    expect_usage_error([] { parse({"in", "--vocab-fiel=a b"}); }, {"--vocab-fiel", "did you mean --vocab-file?"});
}

TEST(ArgParser, LastOccurrenceWins) {
    EXPECT_EQ(parse({"in", "--lr", "1", "--lr=2"}).real("lr"), 2);
    EXPECT_EQ(parse({"in", "--data-path", "a", "b", "--data-path", "c"}).list("data_path"), Words{"c"});
}

TEST(ArgParser, TakesSeveralValuesUpToTheNextFlag) {
    const ParsedArgs args =
        parse({"--data-path", "0.3", "a", "0.7", "b", "--ranks", "0", "-1", "--pair", "1", "2", "in"});
    EXPECT_EQ(args.list("data_path"), (Words{"0.3", "a", "0.7", "b"}));
    EXPECT_EQ(args.integers("ranks"), (std::vector<std::int64_t>{0, -1}));
    EXPECT_EQ(args.integers("pair"), (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(args.text("input"), "in");
    EXPECT_TRUE(parse({"in", "--data-path"}).list("data_path").empty());
}

TEST(ArgParser, AcceptsUnambiguousPrefixes) {
    EXPECT_EQ(parse({"in", "--vocab-f", "v"}).text("vocab_file"), "v");
    EXPECT_EQ(parse({"in", "--sw"}).boolean("swiglu"), true);
    EXPECT_EQ(parse({"in", "--mer", "m"}).text("merge_file"), "m");  // two names of one flag are no ambiguity
    expect_usage_error([] { parse({"in", "--vocab", "v"}); }, {"--vocab", "ambiguous", "--vocab-file", "--vocab-size"});
}

TEST(ArgParser, PrefixesOfAddedFlagsYield) {
    ArgParser parser("prog", "");
    parser.option("vocab-file", ArgType::text);
    ArgSpec added;
    added.names = {"vocab-name"};
    added.dest = "vocab_name";
    added.secondary_ = true;
    parser.add(added);
    EXPECT_EQ(parser.parse({"--vocab", "v"}).text("vocab_file"), "v");
    EXPECT_EQ(parser.parse({"--vocab-n", "v"}).text("vocab_name"), "v");
}

TEST(ArgParser, SuggestsTheNearestFlag) {
    expect_usage_error([] { parse({"in", "--vocab-fiel", "v"}); }, {"--vocab-fiel", "--vocab-file"});
    expect_usage_error([] { parse({"in", "--swiglue"}); }, {"--swiglue", "did you mean --swiglu?"});
    expect_usage_error(
        [] {
            parse({"in", "--completely-different-thing"});
        },
        {"unknown flag --completely-different-thing"});
    expect_usage_error([] { parse({"in", "-x"}); }, {"-x"});
}

TEST(ArgParser, NamesFlagAndValueInErrors) {
    expect_usage_error([] { parse({"in", "--vocab-size", "12.5"}); }, {"--vocab-size", "12.5", "integer"});
    expect_usage_error([] { parse({"in", "--lr", "fast"}); }, {"--lr", "fast", "number"});
    expect_usage_error([] { parse({"in", "--style", "round"}); }, {"--style", "round", "linear, cosine"});
    expect_usage_error([] { parse({"in", "--lr"}); }, {"--lr", "needs 1 value"});
    expect_usage_error([] { parse({"in", "--pair", "1"}); }, {"--pair", "needs 2 values"});
    expect_usage_error([] { parse({"in", "--ranks"}); }, {"--ranks", "at least 1 value"});
    expect_usage_error([] { parse({"in", "--swiglu=1"}); }, {"--swiglu", "no value"});
    expect_usage_error([] { parse({"--lr", "1"}); }, {"input", "required"});
    expect_usage_error([] { parse({"in", "out"}); }, {"unexpected argument 'out'"});
}

TEST(ArgParser, DoubleDashEndsTheFlags) { EXPECT_EQ(parse({"--", "--lr"}).text("input"), "--lr"); }

TEST(ArgParser, ReadsArgumentFiles) {
    const TempFolder folder;
    std::ofstream(folder / "inner") << "--swiglu\n";
    std::ofstream(folder / "args") << "# a comment\n  in --lr 2   # rate\n--vocab-file 'a b' \\\n\n@"
                                   << (folder / "inner") << "\n--style cos\\ine\n";
    const ParsedArgs args = parse({"@" + (folder / "args"), "--lr=3"});
    EXPECT_EQ(args.text("vocab_file"), "a b");
    EXPECT_EQ(args.text("style"), "cosine");
    EXPECT_EQ(args.real("lr"), 3);
    EXPECT_TRUE(args.boolean("swiglu"));
    expect_usage_error([&] { parse({"@" + (folder / "absent")}); }, {"absent"});
    expect_usage_error([&] { parse({"@" + (folder / "")}); }, {"is a folder", "@FILE"});
    std::ofstream(folder / "self") << "@" << (folder / "self");
    expect_usage_error([&] { parse({"@" + (folder / "self")}); }, {"self"});
    std::ofstream(folder / "open") << "in\n'x";
    expect_usage_error([&] { parse({"@" + (folder / "open")}); }, {"open line 2"});
}

TEST(ArgParser, Help) {
    testing::internal::CaptureStdout();
    EXPECT_TRUE(parse({"--help", "--nonsense"}).help_wanted);
    const std::string text = testing::internal::GetCapturedStdout();
    for (const char* part :
         {"usage: prog input [flags]", "--lr X", "(default 0.5)", "--merge-file, --merges", "{linear|cosine}"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " not in\n" << text;
    }
}

TEST(ParseNumbers, AsPythonReadsThem) {
    EXPECT_EQ(parse_integer("-1", ""), -1);
    EXPECT_EQ(parse_integer("+7", ""), 7);
    EXPECT_EQ(parse_integer("2_000", ""), 2000);
    EXPECT_EQ(parse_integer(" 5 ", ""), 5);
    for (const char* bad : {"", "_1", "1_", "1__0", "1.0", "0x10", "1e3", "+-1", "9223372036854775808"}) {
        EXPECT_THROW(parse_integer(bad, "x"), UsageError) << bad;
    }
    EXPECT_EQ(parse_real("6.0e-5", ""), 6.0e-5);
    EXPECT_EQ(parse_real("1_000.5", ""), 1000.5);
    EXPECT_EQ(parse_real("inf", ""), std::numeric_limits<double>::infinity());
    for (const char* bad : {"", "1e", "1,5", "--1", "1_.5", "0.5x"})
        EXPECT_THROW(parse_real(bad, "x"), UsageError) << bad;
}

TEST(NearestName, FindsTyposOnly) {
    const Words names = {"hidden-size", "num-layers", "lr"};
    EXPECT_EQ(nearest_name("hiden-size", names), "hidden-size");
    EXPECT_EQ(nearest_name("num-lyaers", names), "num-layers");
    EXPECT_EQ(nearest_name("zzzzzzzzzz", names), "");
}

}  // namespace
}  // namespace tera
