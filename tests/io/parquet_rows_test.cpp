#include "io/parquet_rows.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <optional>

#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

// The rows of tests/golden/parquet/make_parquet.py.
std::optional<std::string> text_of(int i) {
    if (i % 7 == 3) return std::nullopt;
    if (i % 5 == 0) return "";
    std::string text = "row " + std::to_string(i) + " ";
    for (int n = 0; n < i % 11; ++n) text += "\xC3\xA9\xF0\x9F\x98\x80";
    return text;
}

std::optional<std::string> source_of(int i) { return i % 4 ? std::optional("s" + std::to_string(i)) : std::nullopt; }

std::string golden(const std::string& name) { return std::string(TERA_SOURCE_DIR "/tests/golden/parquet/") + name; }

class Parquet : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!parquet_missing().empty()) GTEST_SKIP() << parquet_missing();
    }
};

TEST_F(Parquet, ReadsTextColumns) {
    for (const char* name : {"dictionary.parquet", "plain.parquet"}) {
        for (const std::size_t bytes : {1, 3000, 1 << 20}) {
            const auto file = open_parquet(golden(name), {"text", "meta.source"});
            EXPECT_EQ(file->rows(), 1000);
            TextColumns part;
            int row = 0;
            while (file->next(part, bytes)) {
                for (std::size_t r = 0; r < part.rows(); ++r, ++row) {
                    const auto text = text_of(row), source = source_of(row);
                    ASSERT_EQ(part.columns[0].missing[r], !text.has_value()) << name << " " << row;
                    ASSERT_EQ(part.columns[0].value(r), text.value_or("")) << name << " " << row;
                    ASSERT_EQ(part.columns[1].missing[r], !source.has_value()) << name << " " << row;
                    ASSERT_EQ(part.columns[1].value(r), source.value_or("")) << name << " " << row;
                }
                ASSERT_EQ(file->row(), row);
            }
            EXPECT_EQ(row, 1000) << name;
        }
    }
}

TEST_F(Parquet, GoesOnFromAnyRow) {
    const auto file = open_parquet(golden("dictionary.parquet"), {"text"});
    TextColumns part;
    for (const int row : {999, 0, 1, 299, 300, 301, 650}) {
        file->seek(row);
        ASSERT_TRUE(file->next(part, 1));
        EXPECT_EQ(part.columns[0].value(0), text_of(row).value_or("")) << row;
    }
    file->seek(1000);
    EXPECT_FALSE(file->next(part, 1));
    expect_usage_error([&] { file->seek(1001); }, {"dictionary.parquet", "1001"});
    EXPECT_FALSE(open_parquet(golden("empty.parquet"), {"text"})->next(part, 1));
}

TEST_F(Parquet, NamesWhatIsNotText) {
    expect_usage_error([] { open_parquet(golden("plain.parquet"), {"body"}); }, {"\"body\"", "id, text, lang"});
    expect_usage_error([] { open_parquet(golden("plain.parquet"), {"id"}); }, {"\"id\"", "INT64"});
    expect_usage_error([] { open_parquet(golden("plain.parquet"), {"tags.list.element"}); }, {"lists"});
    expect_usage_error([] { open_parquet(golden("none.parquet"), {"text"}); }, {"none.parquet"});
}

TEST_F(Parquet, DamageIsRefusedOrChangesNothing) {
    std::ifstream in(golden("dictionary.parquet"), std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    TempFolder folder;
    const auto rows_of = [&](const std::string& bytes) {
        std::ofstream(folder / "x.parquet", std::ios::binary) << bytes;
        const auto file = open_parquet(folder / "x.parquet", {"text"});
        TextColumns part;
        std::string all;
        while (file->next(part, 1 << 20)) all += part.columns[0].bytes;
        return all;
    };
    const std::string expected = rows_of(whole);
    for (std::size_t size = 0; size < whole.size(); size += 97)
        expect_usage_error([&] { rows_of(whole.substr(0, size)); }, {"x.parquet"});
    std::size_t refused = 0;
    for (std::size_t i = 0; i < whole.size(); i += 41) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ 0x44);
        try {
            rows_of(damaged);  // other columns and names in the footer are not covered by a checksum
        } catch (const UsageError& error) {
            EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
            ++refused;
        }
    }
    EXPECT_GT(refused, 10u);
}

TEST(ParquetMagic, IsSeenInTheFirstBytes) {
    EXPECT_TRUE(is_parquet("PAR1...."));
    EXPECT_FALSE(is_parquet("PAR"));
    EXPECT_FALSE(is_parquet("{\"text\""));
}

}  // namespace
}  // namespace tera
