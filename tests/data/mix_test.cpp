#include "data/mix.h"

#include <gtest/gtest.h>

#include <fstream>

#include "data/blend_spec.h"
#include "data/python_random.h"
#include "data/python_text.h"
#include "data/tools_fixture.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

TEST(PythonRandom, ShufflesAsPythonDoes) {
    std::vector<int> x(10);
    for (int i = 0; i < 10; ++i) x[static_cast<std::size_t>(i)] = i;
    PythonRandom(1234).shuffle(x);
    EXPECT_EQ(x, (std::vector<int>{2, 8, 3, 5, 6, 4, 9, 0, 1, 7}));
    std::vector<int> y(1000);
    for (int i = 0; i < 1000; ++i) y[static_cast<std::size_t>(i)] = i;
    PythonRandom(1234).shuffle(y);
    EXPECT_EQ((std::vector<int>(y.begin(), y.begin() + 5)), (std::vector<int>{56, 306, 558, 770, 733}));
    EXPECT_EQ((std::vector<int>(y.end() - 5, y.end())), (std::vector<int>{7, 119, 451, 796, 989}));
    PythonRandom random(1234);
    std::vector<std::uint32_t> drawn;
    for (const std::uint32_t n : {1u, 2u, 7u, 100u, 2147483653u}) drawn.push_back(random.below(n));
    EXPECT_EQ(drawn, (std::vector<std::uint32_t>{0, 0, 0, 11, 150006740}));
}

TEST(PythonText, IsWhatReprPrints) {
    EXPECT_EQ(python_repr(0.1), "0.1");
    EXPECT_EQ(python_repr(1.0), "1.0");
    EXPECT_EQ(python_repr(0.0001), "0.0001");
    EXPECT_EQ(python_repr(std::string_view("a/b")), "'a/b'");
    EXPECT_EQ(python_repr(std::string_view("it's")), "\"it's\"");
    EXPECT_EQ(python_repr(std::string_view("'\"\\\n")), "'\\'\"\\\\\\n'");
    EXPECT_EQ(python_repr(std::vector<std::int64_t>{}), "[]");
    EXPECT_EQ(python_repr({{"b", 0.25}, {"a", 0.75}}), "{'a': 0.75, 'b': 0.25}");
    EXPECT_EQ(python_round(2.675, 2), 2.67);
    EXPECT_EQ(python_round(0.125, 2), 0.12);
}

/// Folders a (12 files), b (5) and c (8) of different sizes, every other file one level deeper.
class Mix : public ::testing::Test {
  protected:
    Mix() {
        const auto fill = [&](const std::string& name, int count, auto tokens) {
            for (int i = 0; i < count; ++i)
                write_pair(folder_ / (name + (i % 2 ? "/x/f" : "/f") + std::to_string(i)), tokens(i));
        };
        fill("a", 12, [](int i) { return 7 * i % 13 + 1; });
        fill("b", 5, [](int i) { return 5 * i % 11 + 3; });
        fill("c", 8, [](int i) { return 3 * i % 7 + 2; });
    }
    MixOptions options(std::vector<double> weights) const {
        MixOptions chosen;
        chosen.folders = {folder_ / "a", folder_ / "b", folder_ / "c"};
        chosen.weights = std::move(weights);
        chosen.output = folder_ / "out";
        return chosen;
    }
    std::string taken(const Mixture& mixture) const {
        std::string names;
        for (const MixFolder& folder : mixture.folders)
            for (std::int64_t i = 0; i < folder.taken; ++i) {
                const std::string& file = folder.files[static_cast<std::size_t>(i)];
                names += file.substr(folder_.path().size() + 1, file.size() - folder_.path().size() - 5) + " ";
            }
        return names;
    }
    TempFolder folder_;
};

// What the rule gives in Python, with its random, sorted and numpy.
TEST_F(Mix, ChoosesTheFilesThatPythonChooses) {
    EXPECT_EQ(taken(choose_mixture(options({0.5, 0.2, 0.3}))),
              "a/f2 a/f4 a/x/f3 a/f6 a/x/f9 a/x/f1 a/f8 a/x/f5 a/x/f7 b/f2 b/f4 c/f2 c/f6 c/f4 c/x/f1 c/x/f3 c/x/f5 "
              "c/f0 c/x/f7 ");
    EXPECT_EQ(taken(choose_mixture(options({1, 8, 1}))), "a/f2 a/f4 b/f2 b/f4 b/x/f3 b/f0 b/x/f1 c/f2 ");
    MixOptions three = options({3, 1, 1});
    EXPECT_EQ(taken(choose_mixture(three)),
              "a/f2 a/f4 a/x/f3 a/f6 a/x/f9 a/x/f1 a/f8 a/x/f5 a/x/f7 a/f0 a/f10 a/x/f11 b/f2 b/f4 c/f2 c/f6 c/f4 "
              "c/x/f1 ");
    three.fill_up = true;
    EXPECT_EQ(taken(choose_mixture(three)),
              "a/f2 a/f4 a/x/f3 a/f6 a/x/f9 a/x/f1 a/f8 a/x/f5 a/x/f7 a/f0 a/f10 a/x/f11 b/f2 b/f4 b/x/f3 c/f2 c/f6 "
              "c/f4 c/x/f1 c/x/f3 ");
}

TEST_F(Mix, WritesManifestSummaryAndLinks) {
    const Mixture mixture = write_mixture(options({1, 8, 1}));
    EXPECT_TRUE(mixture.is_limited);
    EXPECT_EQ(mixture.used_up, 1u);
    const std::string out = folder_ / "out";
    EXPECT_EQ(
        slurp(out + "/dataset_mixture_summary.txt"),
        "Dataset mixture created in " + out +
            " | 8 files ([2, 5, 1]) | 0.0 TB | 0.0 Billion Tokens (x2 if Vocab < 65536) | Resulting mixture is {'" +
            out + "/a': 0.0893, '" + out + "/b': 0.7679, '" + out + "/c': 0.1429}");
    const std::vector<std::string> prefixes = read_data_args(out + "/dataset_mixture_manifest.txt");
    ASSERT_EQ(prefixes.size(), 8u);
    EXPECT_EQ(prefixes[4], folder_ / "b/x/f3");
    EXPECT_FALSE(parse_blend(prefixes, "--data-path").weighted());
    EXPECT_EQ(names_in(out).size(), 2 * 8 + 2u);
    EXPECT_EQ(std::filesystem::read_symlink(out + "/b/x/f3.idx"), folder_ / "b/x/f3.idx");
    EXPECT_EQ(IndexedDataset(out + "/c/f2").index().tokens(), 8);
    write_mixture(options({1, 8, 1}));  // again: nothing to do
    expect_usage_error([&] { write_mixture(options({8, 1, 1})); }, {"out/", "not part of this mixture"});
}

TEST_F(Mix, TheManifestAloneIsEnough) {
    MixOptions chosen = options({1, 1, 1});
    chosen.symlinks = false;
    write_mixture(chosen);
    EXPECT_EQ(names_in(chosen.output),
              (std::vector<std::string>{"dataset_mixture_manifest.txt", "dataset_mixture_summary.txt"}));
    for (const std::string& prefix : read_data_args(mixture_manifest_path(chosen))) IndexedDataset{prefix};
}

TEST_F(Mix, RelativeFoldersGiveLinksThatLead) {
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder_.path());
    MixOptions chosen = options({1, 1});
    chosen.folders = {"a/", "./b"};
    chosen.output = "deep/er/out";
    EXPECT_NO_THROW(write_mixture(chosen));
    std::filesystem::current_path(before);
    EXPECT_EQ(IndexedDataset(folder_ / "deep/er/out/b/f2").index().tokens(), 13);
}

TEST_F(Mix, CountsAPairOnceByWhateverPath) {
    std::filesystem::create_directory_symlink(folder_ / "c", folder_ / "b/again");
    std::filesystem::create_directory_symlink(folder_ / "c", folder_ / "b/and_again");
    MixOptions chosen = options({1, 1});
    chosen.folders.pop_back();
    chosen.fill_up = true;
    EXPECT_EQ(choose_mixture(chosen).folders[1].files.size(), 5u + 8u);
    expect_usage_error([&] { choose_mixture(options({1, 1, 1})); }, {"/b and ", "/c both hold the pair", "c/f0"});
    chosen.folders = {folder_ / "a", folder_ / "a/x"};
    expect_usage_error([&] { choose_mixture(chosen); }, {"/a and ", "/a/x both hold the pair", "a/x/f1"});
    chosen.folders = {folder_ / "a", folder_ / "c"};
    chosen.output = folder_ / "a/x/../mixture";
    expect_usage_error([&] { write_mixture(chosen); }, {"--output", "mixture", "inside --folders", "/a"});
    EXPECT_FALSE(std::filesystem::exists(folder_ / "a/mixture"));
}

TEST_F(Mix, LinksStayInsideTheOutput) {
    const auto before = std::filesystem::current_path();
    std::filesystem::create_directory(folder_ / "a/empty");
    std::filesystem::current_path(folder_ / "a/empty");
    MixOptions chosen = options({1, 1});
    chosen.folders = {"..", "../../b/."};
    EXPECT_NO_THROW(write_mixture(chosen));
    std::filesystem::current_path(before);
    EXPECT_EQ(IndexedDataset(folder_ / "out/b/f2").index().tokens(), 13);
    EXPECT_EQ(IndexedDataset(folder_ / "out/a/f2").index().tokens(), 2);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "f2.bin"));
}

TEST_F(Mix, RefusesWhatCannotBeMeant) {
    expect_usage_error([&] { choose_mixture(options({1, 2})); }, {"--folders", "3", "2", "one for each"});
    expect_usage_error([&] { choose_mixture(options({1, 0, 2})); }, {"--weights", "above 0"});
    expect_usage_error([&] { choose_mixture(options({1, -1, 2})); }, {"--weights"});
    MixOptions twice = options({1, 1, 1});
    write_pair(folder_ / "other/a/f", 3);
    twice.folders[2] = folder_ / "other/a/";
    expect_usage_error([&] { choose_mixture(twice); }, {"same name 'a'"});
    std::filesystem::create_directory(folder_ / "empty");
    twice.folders[2] = folder_ / "empty";
    expect_usage_error([&] { choose_mixture(twice); }, {"no .bin/.idx pair under", "empty"});
    std::filesystem::remove(folder_ / "c/f2.idx");
    expect_usage_error([&] { choose_mixture(options({1, 1, 1})); }, {"c/f2.bin", "no", "c/f2.idx"});
}

}  // namespace
}  // namespace tera
