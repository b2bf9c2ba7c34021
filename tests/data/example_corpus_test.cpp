#include "data/example_corpus.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>

#include <fstream>
#include <set>

#include "core/error.h"
#include "data/example_corpus_grammar.h"
#include "data/preprocess_lines.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

/// What no finished story may hold.
void expect_clean(const std::string& story, const std::string& where) {
    ASSERT_FALSE(story.empty());
    for (const char* mark :
         {"[", "]", "{", "}", "<", ">", "|", "^", "~", "  ", " .", " ,", "..", " \n", "\n ", "\n\n\n"})
        ASSERT_EQ(story.find(mark), std::string::npos) << mark << " in " << where << ": " << story;
    for (const char* end : {". ", "! ", "? ", "\n\n"}) {
        const std::size_t length = std::char_traits<char>::length(end);
        for (std::size_t at = story.find(end); at != std::string::npos; at = story.find(end, at + 1))
            ASSERT_FALSE(std::islower(static_cast<unsigned char>(story[at + length])))
                << where << ": ..." << story.substr(at, 40);
    }
    for (const char vowel : {'a', 'e', 'i', 'o'})
        ASSERT_EQ(story.find(std::string(" a ") + vowel), std::string::npos) << where << ": " << story;
    ASSERT_EQ(std::count(story.begin(), story.end(), '"') % 2, 0) << where << ": " << story;
    ASSERT_TRUE(std::isupper(static_cast<unsigned char>(story[0])) || story[0] == '"') << story;
    ASSERT_NE(std::string(".!?\"").find(story.back()), std::string::npos) << story;
}

TEST(ExampleCorpus, EveryPlotIsCleanHoweverItIsTold) {
    const StoryGrammar& grammar = example_grammar();
    EXPECT_GE(grammar.plots.size(), 30u);
    for (const StoryPlot& plot : grammar.plots)
        for (std::uint64_t round = 0; round < 200; ++round) {
            StoryRandom random(17, round);
            expect_clean(tell_story(grammar, plot, random), plot.name);
        }
}

TEST(ExampleCorpus, StoriesDependOnSeedAndNumberOnly) {
    EXPECT_EQ(example_story(1, 5), example_story(1, 5));
    EXPECT_NE(example_story(1, 5), example_story(1, 6));
    EXPECT_NE(example_story(1, 5), example_story(2, 5));
    std::set<std::string> all;
    for (std::uint64_t i = 0; i < 2000; ++i) all.insert(example_story(3, i));
    EXPECT_EQ(all.size(), 2000u);
}

TEST(ExampleCorpus, FileHasTheSizeAndIsJsonLines) {
    const TempFolder folder;
    const ExampleCorpusSize size = write_example_corpus(folder / "a", 200000, 7);
    const std::string text = contents(folder / "a");
    EXPECT_EQ(static_cast<std::int64_t>(text.size()), size.bytes);
    EXPECT_GE(size.bytes, 200000);
    EXPECT_LT(size.bytes, 210000);
    write_example_corpus(folder / "b", 200000, 7);
    EXPECT_EQ(contents(folder / "b"), text);
    KeyedStrings keyed({"text"});
    std::int64_t lines = 0;
    for (std::string_view rest = text; !rest.empty(); ++lines) {
        keyed.parse(take_line(rest).text);
        ASSERT_EQ(keyed.strings(0).at(0), example_story(7, static_cast<std::uint64_t>(lines)));
    }
    EXPECT_EQ(lines, size.stories);
}

TEST(StoryGrammar, Prose) {
    EXPECT_EQ(polish_prose("one day, a owl  came. it sat on a oak. "), "One day, an owl came. It sat on an oak.");
    EXPECT_EQ(polish_prose("she said, \"come in.\" then \"why?\" he asked. \"yes,\" she said, \"and now.\""),
              "She said, \"Come in.\" Then \"Why?\" he asked. \"Yes,\" she said, \"and now.\"");
    EXPECT_EQ(polish_prose("\"stop!\" ^then \"a ~b\""), "\"Stop!\" Then \"A b\"");
    EXPECT_EQ(polish_prose("a useful one"), "A useful one");
}

TEST(StoryGrammar, ReadsItsLanguageAndRefusesTheUnknown) {
    const StoryGrammar grammar = parse_story_grammar({"%girl Ann\n%boy Bob\n%child_nature kind\n@hi\nhi {hero}\n",
                                                      "#plot p: hero=child\n<hi>[!|!]\n-\n{hero.he}.\n"});
    StoryRandom random(1, 1);
    const std::string story = tell_story(grammar, grammar.plots.at(0), random);
    EXPECT_TRUE(story == "Hi Ann!\n\nShe." || story == "Hi Bob!\n\nHe.") << story;
    EXPECT_THROW(expand_template(grammar, {}, "<nothing>", random), Error);
    EXPECT_THROW(expand_template(grammar, {}, "{nobody}", random), Error);
    EXPECT_THROW(expand_template(grammar, {}, "[a|b", random), Error);
    EXPECT_THROW(parse_story_grammar({"stray line"}), Error);
}

}  // namespace
}  // namespace tera
