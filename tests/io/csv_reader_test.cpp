#include "io/csv_reader.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <random>

#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

using Rows = std::vector<std::vector<std::string>>;

class Csv : public ::testing::Test {
  protected:
    std::string file(const std::string& text) {
        std::ofstream(folder_ / "x.csv", std::ios::binary) << text;
        return folder_ / "x.csv";
    }
    static void append(const TextColumns& part, Rows& rows) {
        for (std::size_t r = 0; r < part.rows(); ++r) {
            rows.emplace_back();
            for (const auto& column : part.columns) rows.back().emplace_back(column.value(r));
        }
    }
    static Rows rest(CsvReader& reader, std::size_t bytes = 1000) {
        Rows rows;
        TextColumns part;
        while (reader.next(part, bytes)) append(part, rows);
        return rows;
    }
    Rows read(const std::string& text, const std::vector<std::string>& columns, std::size_t bytes = 1000) {
        CsvReader reader(file(text), columns);
        return rest(reader, bytes);
    }
    TempFolder folder_;
};

TEST_F(Csv, ReadsFieldsAsTheStandardSays) {
    const std::string text =
        "id,text,\"a \"\"b\"\"\"\r\n"
        "1,plain,x\r\n"
        "2,\"with, comma\",\"line\r\nand \"\"quote\"\"\"\n"
        "\n"
        "3,,\"\"\r"
        "4,a \"quote\" inside, y ";
    const Rows expected = {
        {"plain", "x"}, {"with, comma", "line\r\nand \"quote\""}, {"", ""}, {"a \"quote\" inside", " y "}};
    for (const std::size_t bytes : {1, 10, 1000}) EXPECT_EQ(read(text, {"text", "a \"b\""}, bytes), expected);
    EXPECT_EQ(read("\xEF\xBB\xBFtext\nx\n", {"text"}), (Rows{{"x"}}));
    EXPECT_EQ(read("text\n", {"text"}), Rows{});
    EXPECT_EQ(read("text\n\"\"\n\nx", {"text"}), (Rows{{""}, {"x"}}));  // a blank line is no record, an empty field is
    CsvReader tabs(file("a\tb\n1,2\t3\n"), {"a"}, '\t');
    EXPECT_EQ(rest(tabs), (Rows{{"1,2"}}));
}

TEST_F(Csv, ReadsRecordsLongerThanItsBuffer) {
    std::string text = "n,text\n";
    Rows expected;
    std::mt19937 random(3);
    for (int i = 0; i < 300; ++i) {
        std::string value(random() % (i % 50 == 0 ? 700000 : 5000), 'x'), quoted;
        for (char& c : value) c = "ab\"\n\r,"[random() % 6];
        for (const char c : value) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
        text += std::to_string(i) + ",\"" + quoted + "\"" + (i % 3 ? "\n" : "\r\n");
        expected.push_back({value});
    }
    EXPECT_TRUE(read(text, {"text"}, 1 << 16) == expected);
}

TEST_F(Csv, EmptyFieldsDoNotPileUp) {
    std::string text = "a,b\n";
    for (int i = 0; i < 100000; ++i) text += ",x\n";
    CsvReader reader(file(text), {"a"});
    TextColumns part;
    std::size_t rows = 0;
    for (; reader.next(part, 8000); rows += part.rows()) EXPECT_LE(part.rows(), 1000u);
    EXPECT_EQ(rows, 100000u);
}

TEST_F(Csv, NamesTheLine) {
    expect_usage_error([&] { read("", {"text"}); }, {"x.csv", "empty"});
    expect_usage_error([&] { read("a,b\n1,2\n", {"text"}); }, {"x.csv", "no column \"text\"", "a, b"});
    expect_usage_error([&] { read("text,text\n", {"text"}); }, {"twice"});
    expect_usage_error([&] { read("a,b\n\"x\ny\",1\n1,2,3\n", {"a"}); }, {"line 4", "3 fields", "header has 2"});
    expect_usage_error([&] { read("a\n1\n\"x", {"a"}); }, {"line 3", "never closed"});
    expect_usage_error([&] { read("a\n\"x\"y\n", {"a"}); }, {"line 2", "behind a closing quote"});
    expect_usage_error([&] { read("\"a\n", {"a"}); }, {"line 1", "never closed"});
}

TEST_F(Csv, GoesOnBehindABadRecord) {
    CsvReader reader(file("a,b\n1,2\n\"x\"y,3\n4\n\"5\n\",6\n7,8\n\"9"), {"a"});
    Rows rows;
    TextColumns part;
    std::vector<std::string> problems;
    for (;;) {
        try {
            if (!reader.next(part, 1000)) break;
            append(part, rows);
        } catch (const UsageError& error) {
            const std::string what = error.what();
            problems.push_back(what.substr(what.find("line")));
            reader.skip_record();
        }
    }
    EXPECT_EQ(rows, (Rows{{"1"}, {"5\n"}, {"7"}}));
    EXPECT_EQ(problems, (std::vector<std::string>{"line 3: there is text behind a closing quote",
                                                  "line 4: has 1 fields where the header has 2",
                                                  "line 8: a quote is opened that is never closed"}));
    EXPECT_EQ(reader.place().row, 6);
}

TEST_F(Csv, GoesOnFromAnyPlace) {
    std::string text = "a,b\n", packed_path = folder_ / "x.csv.gz";
    for (int i = 0; i < 50000; ++i) text += "\"row\n" + std::to_string(i) + "\",b\n";
    file(text);
    const gzFile packed = gzopen(packed_path.c_str(), "wb");
    for (std::size_t at = 0; at < text.size(); at += 100000) {  // a member for each part
        gzwrite(packed, text.data() + at, static_cast<unsigned>(std::min<std::size_t>(100000, text.size() - at)));
        gzflush(packed, Z_FINISH);
    }
    gzclose(packed);
    for (const std::string& path : {std::string(folder_ / "x.csv"), packed_path}) {
        CsvReader whole(path, {"a"});
        const Rows all = rest(whole);
        ASSERT_EQ(all.size(), 50000u);
        CsvReader first(path, {"a"}), second(path, {"a"});
        std::size_t done = 0;
        TextColumns part;
        for (int n = 0; n < 4; ++n) {
            for (int i = 0; i < 7; ++i) {
                ASSERT_TRUE(first.next(part, 15000));
                done += part.rows();
            }
            second.seek(first.place());
            EXPECT_EQ(second.place().row, static_cast<std::int64_t>(done));
            EXPECT_EQ(second.place().line, static_cast<std::int64_t>(2 * done + 2));
            if (path == packed_path) {
                EXPECT_GT(first.place().restart.position, first.place().position - 500000);
            }
            EXPECT_TRUE(rest(second) == Rows(all.begin() + static_cast<std::ptrdiff_t>(done), all.end())) << path;
        }
    }
}

}  // namespace
}  // namespace tera
