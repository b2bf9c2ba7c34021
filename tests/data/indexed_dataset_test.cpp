#include "data/indexed_dataset.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <random>

#include "data/indexed_dataset_writer.h"
#include "data_fixture.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

namespace fs = std::filesystem;

std::string hex(const std::string& bytes) {
    std::string text;
    for (const char c : bytes) {
        char pair[3];
        std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned char>(c));
        text += pair;
    }
    return text;
}

std::string index_bytes(const std::string& magic, std::uint64_t version, std::uint8_t type, std::uint64_t sequences,
                        std::uint64_t documents) {
    std::string b = magic;
    b.append(reinterpret_cast<const char*>(&version), 8);
    b.append(reinterpret_cast<const char*>(&type), 1);
    b.append(reinterpret_cast<const char*>(&sequences), 8);
    b.append(reinterpret_cast<const char*>(&documents), 8);
    return b;
}

template <class T>
void put(std::string& b, std::initializer_list<T> values) {
    for (const T v : values) b.append(reinterpret_cast<const char*>(&v), sizeof(T));
}

const std::string good_magic{"MMIDIDX\0\0", 9};

SequenceIndex parse(const std::string& bytes) {
    return SequenceIndex::parse(std::as_bytes(std::span(bytes.data(), bytes.size())), "x.idx");
}

std::vector<std::int32_t> read_all(const IndexedDataset& data, std::int64_t i) {
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(data.sequence_length(i)));
    data.get(i, 0, data.sequence_length(i), tokens.data());
    return tokens;
}

TEST(IndexedDatasetWriter, WorkedExample) {
    const TempFolder dir;
    write_corpus(dir / "c", {{1, 2, 3}, {4, 5}});
    EXPECT_EQ(hex(slurp(dir / "c.bin")), "01000200030004000500");
    EXPECT_EQ(hex(slurp(dir / "c.idx")),
              "4d4d49444944580000"
              "0100000000000000"
              "08"
              "0200000000000000"
              "0300000000000000"
              "03000000"
              "02000000"
              "0000000000000000"
              "0600000000000000"
              "0000000000000000"
              "0100000000000000"
              "0200000000000000");
    EXPECT_EQ(fs::file_size(dir / "c.idx"), 82u);
}

TEST(IndexedDatasetWriter, EmptyInputGives42Bytes) {
    const TempFolder dir;
    write_corpus(dir / "c", {});
    EXPECT_EQ(fs::file_size(dir / "c.bin"), 0u);
    EXPECT_EQ(fs::file_size(dir / "c.idx"), 42u);
    const IndexedDataset data(dir / "c");
    EXPECT_EQ(data.size(), 0);
    EXPECT_EQ(data.index().documents(), 0);
}

TEST(IndexedDatasetWriter, ElementTypeByVocabulary) {
    EXPECT_EQ(token_type_for(50257), TokenType::u16);
    EXPECT_EQ(token_type_for(65499), TokenType::u16);
    EXPECT_EQ(token_type_for(65500), TokenType::i32);
}

TEST(IndexedDatasetWriter, SentencesAndEmptyDocuments) {
    const TempFolder dir;
    {
        IndexedDatasetWriter writer(dir / "c", TokenType::i32);
        const std::vector<std::int32_t> tokens{7, 8, 9, 70000, 1};
        writer.add_document(tokens, std::vector<std::int32_t>{3, 2});
        writer.add_document({}, {});
        writer.add_document(std::vector<std::int32_t>{5}, std::vector<std::int32_t>{1});
        writer.finish();
    }
    const IndexedDataset data(dir / "c");
    ASSERT_EQ(data.size(), 3);
    EXPECT_EQ(data.index().documents(), 3);
    std::vector<std::int64_t> documents;
    for (int i = 0; i <= 3; ++i) documents.push_back(data.index().document_index(i));
    EXPECT_EQ(documents, (std::vector<std::int64_t>{0, 2, 2, 3}));
    EXPECT_EQ(read_all(data, 1), (std::vector<std::int32_t>{70000, 1}));
    std::int32_t one = 0;
    data.get(0, 2, 1, &one);
    EXPECT_EQ(one, 9);
}

TEST(IndexedDatasetWriter, UnfinishedLeavesNothing) {
    const TempFolder dir;
    {
        IndexedDatasetWriter writer(dir / "c", TokenType::u16);
        writer.add_sequence(std::vector<std::int32_t>{1, 2});
        writer.end_document();
        EXPECT_FALSE(fs::exists(dir / "c.idx"));
        EXPECT_FALSE(fs::exists(dir / "c.bin"));
    }
    EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(IndexedDatasetWriter, ReplacesAnOlderDataset) {
    const TempFolder dir;
    write_corpus(dir / "c", {{1, 2, 3}});
    write_corpus(dir / "c", {{4}, {5}});
    EXPECT_EQ(IndexedDataset(dir / "c").size(), 2);
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), fs::directory_iterator()), 2);
}

TEST(IndexedDatasetWriter, RefusesIdsThatDoNotFit) {
    const TempFolder dir;
    expect_usage_error([&] { write_corpus(dir / "c", {{1, 65536}}); }, {"65536", "uint16", "document 0"});
    expect_usage_error([&] { write_corpus(dir / "c", {{-1}}); }, {"-1"});
    expect_usage_error([&] { write_corpus(dir / "none/c", {{1}}); }, {"no folder", "none"});
}

TEST(IndexedDatasetWriter, TwoWritersOfOneOutput) {
    const TempFolder dir;
    const IndexedDatasetWriter first(dir / "c", TokenType::u16);
    expect_usage_error([&] { IndexedDatasetWriter(dir / "c", TokenType::u16); }, {"another process"});
}

TEST(IndexedDatasetWriter, Merge) {
    const TempFolder dir;
    write_corpus(dir / "a", {{1, 2, 3}, {4, 5}});
    {
        IndexedDatasetWriter writer(dir / "b", TokenType::u16);
        writer.add_document(std::vector<std::int32_t>{6, 7}, std::vector<std::int32_t>{1, 1});
        writer.add_document({}, {});
        writer.finish();
    }
    {
        IndexedDatasetWriter writer(dir / "m", TokenType::u16);
        writer.add_dataset(dir / "a");
        writer.add_dataset(dir / "b");
        writer.finish();
    }
    {
        IndexedDatasetWriter writer(dir / "direct", TokenType::u16);
        writer.add_document(std::vector<std::int32_t>{1, 2, 3}, std::vector<std::int32_t>{3});
        writer.add_document(std::vector<std::int32_t>{4, 5}, std::vector<std::int32_t>{2});
        writer.add_document(std::vector<std::int32_t>{6, 7}, std::vector<std::int32_t>{1, 1});
        writer.add_document({}, {});
        writer.finish();
    }
    EXPECT_EQ(slurp(dir / "m.bin"), slurp(dir / "direct.bin"));
    EXPECT_EQ(slurp(dir / "m.idx"), slurp(dir / "direct.idx"));
    write_corpus(dir / "i32", {{1}}, TokenType::i32);
    IndexedDatasetWriter writer(dir / "n", TokenType::u16);
    expect_usage_error([&] { writer.add_dataset(dir / "i32"); }, {"i32", "int32", "uint16"});
}

TEST(IndexedDataset, AllElementTypes) {
    const TempFolder dir;
    for (int code = 1; code <= 8; ++code) {
        const auto type = static_cast<TokenType>(code);
        const std::string prefix = dir / ("t" + std::to_string(code));
        write_corpus(prefix, {{1, 2, 100}, {}, {127, 0}}, type);
        for (const bool map : {true, false}) {
            const IndexedDataset data(prefix, map);
            EXPECT_EQ(data.index().type(), type);
            EXPECT_EQ(fs::file_size(prefix + ".bin"), static_cast<std::uintmax_t>(5 * item_size(type)));
            EXPECT_EQ(read_all(data, 0), (std::vector<std::int32_t>{1, 2, 100})) << code;
            EXPECT_EQ(read_all(data, 1), (std::vector<std::int32_t>{}));
            EXPECT_EQ(read_all(data, 2), (std::vector<std::int32_t>{127, 0}));
        }
    }
}

// Before 2023 code 7 stood for 8-byte floats; the offsets tell.
TEST(IndexedDataset, OldDoubleCode) {
    const TempFolder dir;
    std::string idx = index_bytes(good_magic, 1, 7, 2, 3);
    put<std::int32_t>(idx, {2, 1});
    put<std::int64_t>(idx, {0, 16, 0, 1, 2});
    std::string bin;
    put<double>(bin, {5, 6, 7});
    spill(dir / "c.idx", idx);
    spill(dir / "c.bin", bin);
    EXPECT_EQ(read_all(IndexedDataset(dir / "c"), 0), (std::vector<std::int32_t>{5, 6}));
}

TEST(IndexedDataset, ValuesThatAreNoTokenIds) {
    const TempFolder dir;
    std::string idx = index_bytes(good_magic, 1, 5, 1, 2);
    put<std::int32_t>(idx, {2});
    put<std::int64_t>(idx, {0, 0, 1});
    std::string bin;
    put<std::int64_t>(bin, {5, std::int64_t{1} << 40});
    spill(dir / "c.idx", idx);
    spill(dir / "c.bin", bin);
    expect_usage_error([&] { read_all(IndexedDataset(dir / "c"), 0); }, {"c.bin", "sequence 0", "token 1"});
    idx[17] = 6;
    bin.clear();
    put<double>(bin, {5.5, 1});
    spill(dir / "c.idx", idx);
    spill(dir / "c.bin", bin);
    expect_usage_error([&] { read_all(IndexedDataset(dir / "c"), 0); }, {"c.bin", "token 0"});
}

TEST(IndexedDataset, Modes) {
    std::string idx = index_bytes(good_magic, 1, 4, 2, 2);
    put<std::int32_t>(idx, {2, 1});
    put<std::int64_t>(idx, {0, 8, 0, 2});
    EXPECT_FALSE(parse(idx).has_modes());
    put<std::int8_t>(idx, {0, 1});
    ASSERT_TRUE(parse(idx).has_modes());
    EXPECT_EQ(parse(idx).mode(1), 1);
}

TEST(IndexedDataset, HostileIndex) {
    const auto refuse = [](const std::string& bytes, std::initializer_list<const char*> parts) {
        expect_usage_error([&] { parse(bytes); }, parts);
    };
    refuse("", {"x.idx", "MMIDIDX"});
    refuse("MMIDIDX", {"MMIDIDX"});
    refuse(std::string(100, 'x'), {"MMIDIDX"});
    refuse(good_magic + "abc", {"12 bytes"});
    refuse(index_bytes(good_magic, 2, 8, 0, 1) + std::string(8, '\0'), {"version 2"});
    refuse(index_bytes(good_magic, 1, 0, 0, 1) + std::string(8, '\0'), {"type code 0"});
    refuse(index_bytes(good_magic, 1, 9, 0, 1) + std::string(8, '\0'), {"type code 9"});
    refuse(index_bytes(good_magic, 1, 8, ~std::uint64_t{0}, 1) + std::string(8, '\0'), {"18446744073709551615"});
    refuse(index_bytes(good_magic, 1, 8, std::uint64_t{1} << 62, std::uint64_t{1} << 61), {"cut short"});
    refuse(index_bytes(good_magic, 1, 8, 0, ~std::uint64_t{0}), {"cut short"});
    refuse(index_bytes(good_magic, 1, 8, 0, 0), {"document index is empty"});
    refuse(index_bytes(good_magic, 1, 8, 0, 1) + std::string(9, '\0'), {"43 bytes", "42"});
    std::string idx;
    const auto two = [&](std::initializer_list<std::int32_t> lengths, std::initializer_list<std::int64_t> rest) {
        idx = index_bytes(good_magic, 1, 8, 2, 3);
        put<std::int32_t>(idx, lengths);
        put<std::int64_t>(idx, rest);
    };
    two({3, 2}, {0, 6, 0, 1, 2});
    EXPECT_EQ(parse(idx).tokens(), 5);
    two({-3, 2}, {0, 6, 0, 1, 2});
    refuse(idx, {"sequence 0", "-3"});
    two({3, 2}, {0, 4, 0, 1, 2});
    refuse(idx, {"sequence 1", "byte 4", "6"});
    two({3, 2}, {2, 6, 0, 1, 2});
    refuse(idx, {"sequence 0"});
    two({3, 2}, {0, 6, 1, 1, 2});
    refuse(idx, {"begins with 1"});
    two({3, 2}, {0, 6, 0, 1, 1});
    refuse(idx, {"ends at sequence 1 of 2"});
    two({3, 2}, {0, 6, 0, 3, 2});
    refuse(idx, {"document index 1 is 3"});
    two({3, 2}, {0, 6, 0, -1, 2});
    refuse(idx, {"document index 1 is -1"});
}

TEST(IndexedDataset, EveryCutOfAGoodIndexIsRefused) {
    const TempFolder dir;
    write_corpus(dir / "c", {{1, 2, 3}, {4, 5}, {6}});
    const std::string whole = slurp(dir / "c.idx");
    for (std::size_t size = 0; size < whole.size(); ++size)
        expect_usage_error([&] { parse(whole.substr(0, size)); }, {"x.idx"});
}

// Random damage either is noticed or leaves an index that can be walked without leaving it.
TEST(IndexedDataset, RandomDamage) {
    const TempFolder dir;
    write_corpus(dir / "c", {{1, 2, 3}, {4, 5}, {6}, {}, {7, 8}});
    const std::string whole = slurp(dir / "c.idx");
    std::mt19937 random(1);
    for (int round = 0; round < 20000; ++round) {
        std::string bytes = whole;
        for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
        try {
            const SequenceIndex index = parse(bytes);
            for (std::int64_t i = 0; i < index.sequences(); ++i)
                ASSERT_LE(index.offset(i) + index.length(i) * index.token_size(), index.bin_size());
        } catch (const UsageError&) {
        }
    }
}

TEST(IndexedDataset, FilesMissingOrShort) {
    const TempFolder dir;
    expect_usage_error([&] { IndexedDataset(dir / "none"); }, {"none.idx", "no such file"});
    write_corpus(dir / "c", {{1, 2, 3}});
    fs::resize_file(dir / "c.bin", 5);
    expect_usage_error([&] { IndexedDataset(dir / "c"); }, {"c.bin", "5 bytes", "6"});
    fs::remove(dir / "c.bin");
    expect_usage_error([&] { IndexedDataset(dir / "c"); }, {"c.bin", "no such file"});
    fs::create_directory(dir / "c.bin");
    expect_usage_error([&] { IndexedDataset(dir / "c"); }, {"c.bin", "folder"});
}

// A real corpus' index: 790 documents, 2 340 256 GPT-2 tokens.
TEST(IndexedDataset, RealIndex) {
    const std::string path = std::string(TERA_SOURCE_DIR) + "/../shared/data/oscar_text_document.idx";
    if (!fs::exists(path)) GTEST_SKIP() << "no " << path;
    const MappedFile file(path);
    const SequenceIndex index = SequenceIndex::parse(file.bytes(), path);
    EXPECT_EQ(index.type(), TokenType::u16);
    EXPECT_EQ(index.sequences(), 790);
    EXPECT_EQ(index.documents(), 790);
    EXPECT_EQ(index.tokens(), 2340256);
    EXPECT_EQ(index.bin_size(), 4680512);
}

}  // namespace
}  // namespace tera
