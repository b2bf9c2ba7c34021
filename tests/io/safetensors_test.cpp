#include "io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/json_file.h"
#include "support/expect_usage_error.h"
#include "support/temp_folder.h"

namespace tera {
namespace {

std::span<const std::byte> raw(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

void write_raw(const std::string& path, std::uint64_t length, const std::string& header, std::size_t data) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), 8);
    out << header << std::string(data, 'd');
}

void write_header(const std::string& path, const std::string& header, std::size_t data) {
    write_raw(path, header.size(), header, data);
}

std::vector<float> read_all(const SafetensorsFile& file, const std::string& name) {
    const SafetensorsEntry* entry = file.find(name);
    std::vector<float> out(entry->bytes / sizeof(float));
    file.read(*entry, 0, std::as_writable_bytes(std::span(out)));
    return out;
}

TEST(Safetensors, WhatIsWrittenIsRead) {
    TempFolder folder;
    const std::string path = folder / "a.safetensors";
    const std::vector<float> w = {1, 2, 3, 4, 5, 6}, b = {-1, 0.5f};
    SafetensorsWriter writer(path, {{"w", DType::f32, {2, 3}}, {"b", DType::f32, {2}}, {"none", DType::i64, {0, 4}}},
                             {{"format", "pt"}});
    writer.write("b", 0, raw(b));
    writer.write("w", 12, raw(w).subspan(12));
    writer.write("w", 0, raw(w).first(12));
    EXPECT_EQ(writer.checksum("w"), crc32c(0, raw(w)));
    EXPECT_EQ(writer.checksum("none"), 0u);
    writer.close();
    EXPECT_EQ(std::filesystem::file_size(path), writer.file_size());

    const SafetensorsFile file(path);
    ASSERT_EQ(file.entries().size(), 3u);
    EXPECT_EQ(file.metadata().at("format"), "pt");
    EXPECT_EQ(read_all(file, "w"), w);
    EXPECT_EQ(read_all(file, "b"), b);
    EXPECT_EQ(file.find("w")->shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_EQ(file.find("w")->offset % 64, 0u);
    EXPECT_EQ(file.find("absent"), nullptr);
    float middle[2];
    file.read(*file.find("w"), 8, std::as_writable_bytes(std::span(middle)));
    EXPECT_EQ(middle[0], 3);
    EXPECT_EQ(middle[1], 4);
}

TEST(Safetensors, AnUnfinishedTensorHasNoChecksum) {
    TempFolder folder;
    SafetensorsWriter writer(folder / "a", {{"w", DType::f32, {2}}}, {});
    const std::vector<float> half = {1};
    writer.write("w", 0, raw(half));
    EXPECT_THROW(writer.checksum("w"), Error);
    EXPECT_THROW(writer.write("w", 8, raw(half)), Error);
    EXPECT_THROW(writer.write("v", 0, raw(half)), Error);
}

TEST(Safetensors, TwoWritersFillOneFile) {
    TempFolder folder;
    const std::vector<TensorSpec> specs = {{"w", DType::f32, {4}}};
    const std::vector<float> w = {1, 2, 3, 4};
    SafetensorsWriter first(folder / "a", specs, {}), second(folder / "a", specs, {}, OutputFile::Mode::join);
    second.write("w", 8, raw(w).subspan(8));
    first.write("w", 0, raw(w).first(8));
    first.close();
    second.close();
    EXPECT_EQ(read_all(SafetensorsFile(folder / "a"), "w"), w);
}

struct BadHeader {
    const char* what;
    const char* header;
    std::size_t data;
    const char* complaint;
};

TEST(Safetensors, RefusesWhatIsNotConsistent) {
    const BadHeader cases[] = {
        {"empty", "", 0, "no JSON header"},
        {"not JSON", "{\"a\"", 0, "not valid JSON"},
        {"array", "[]", 0, "no JSON header"},
        {"blanks first", " {}", 0, "no JSON header"},
        {"dtype missing", R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "\"dtype\" is missing"},
        {"dtype unknown", R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "F33"},
        {"dtype number", R"({"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}})", 4, "must be a text"},
        {"shape negative", R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "non-negative"},
        {"shape real", R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "non-negative"},
        {"shape overflow", R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,4]}})",
         4, "too large"},
        {"shape huge", R"({"a":{"dtype":"F32","shape":[18446744073709551615],"data_offsets":[0,4]}})", 4, "too large"},
        {"offsets three", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "two numbers"},
        {"offsets reversed", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "takes 4 bytes"},
        {"offsets wrong", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "takes 8 bytes"},
        {"half a byte", R"({"a":{"dtype":"F4","shape":[1],"data_offsets":[0,1]}})", 1, "whole byte"},
        {"gap", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "gap of 4 bytes"},
        {"overlap",
         R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
         12, "overlaps"},
        {"truncated", R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 7, "1 bytes beyond the end"},
        {"bytes left over", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5, "belong to no tensor"},
        {"twice",
         R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
         8, "occurs twice"},
        {"foreign key", R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "\"x\""},
        {"metadata", R"({"__metadata__":{"a":1}})", 0, "object of texts"},
        {"tensor is a number", R"({"a":1})", 0, "expected a JSON object"},
    };
    TempFolder folder;
    const std::string path = folder / "bad.safetensors";
    for (const BadHeader& c : cases) {
        SCOPED_TRACE(c.what);
        write_header(path, c.header, c.data);
        expect_usage_error([&] { SafetensorsFile file(path); }, {"bad.safetensors", c.complaint});
    }
}

TEST(Safetensors, RefusesHostileSizes) {
    TempFolder folder;
    const std::string path = folder / "bad.safetensors";
    for (const std::uint64_t length :
         {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{3}, std::uint64_t{1} << 40}) {
        write_raw(path, length, "{}", 0);
        expect_usage_error([&] { SafetensorsFile file(path); }, {"bad.safetensors", "not a whole"});
    }
    std::ofstream(path) << "1234567";
    expect_usage_error([&] { SafetensorsFile file(path); }, {"too few"});
    expect_usage_error([&] { SafetensorsFile file(folder / "absent"); }, {"absent", "No such file"});
    expect_usage_error([&] { SafetensorsFile file(folder.path()); }, {"not a file"});
}

TEST(Safetensors, AFileThatShrinksIsAnError) {
    TempFolder folder;
    const std::string path = folder / "a.safetensors";
    const std::vector<float> w = {1, 2, 3, 4};
    SafetensorsWriter writer(path, {{"w", DType::f32, {4}}}, {});
    writer.write("w", 0, raw(w));
    writer.close();
    const SafetensorsFile file(path);
    std::filesystem::resize_file(path, writer.file_size() - 4);
    expect_usage_error([&] { read_all(file, "w"); }, {"a.safetensors", "ends at byte"});
}

TEST(Safetensors, DTypesThatWeDoNotComputeWithAreStillRead) {
    TempFolder folder;
    write_header(folder / "a", R"({"a":{"dtype":"F8_E4M3","shape":[3,1,1,1,1,1],"data_offsets":[0,3]}})", 3);
    const SafetensorsFile file(folder / "a");
    EXPECT_FALSE(file.find("a")->dtype.has_value());
    EXPECT_EQ(file.find("a")->shape_text(), "[3,1,1,1,1,1]");
}

TEST(Safetensors, ShardsAreCutInOrder) {
    const std::vector<TensorSpec> specs = {
        {"a", DType::f32, {4}}, {"b", DType::f32, {4}}, {"c", DType::f32, {100}}, {"d", DType::f32, {1}}};
    EXPECT_EQ(plan_shards(specs, "model", 1 << 20).size(), 1u);
    EXPECT_EQ(plan_shards(specs, "model", 1 << 20)[0].file, "model.safetensors");
    const auto shards = plan_shards(specs, "model", 40);
    ASSERT_EQ(shards.size(), 3u);
    EXPECT_EQ(shards[0].file, "model-00001-of-00003.safetensors");
    EXPECT_EQ(shards[0].tensors.size(), 2u);
    EXPECT_EQ(shards[1].tensors[0].name, "c");
    EXPECT_EQ(shards[2].tensors[0].name, "d");
    const auto index = shard_index(shards);
    EXPECT_EQ(index["metadata"]["total_size"], 436);
    EXPECT_EQ(index["weight_map"]["c"], "model-00002-of-00003.safetensors");
}

class SafetensorsShards : public ::testing::Test {
  protected:
    void SetUp() override {
        const std::vector<TensorSpec> specs = {{"a", DType::f32, {4}}, {"b", DType::f32, {4}}};
        shards_ = plan_shards(specs, "model", 16);
        for (const SafetensorsShard& shard : shards_) {
            SafetensorsWriter writer(folder_ / shard.file, shard.tensors, {});
            writer.write(shard.tensors[0].name, 0, raw({1, 2, 3, 4}));
            writer.close();
        }
        write_index(shard_index(shards_));
    }
    void write_index(const nlohmann::json& json) {
        write_file_durably(folder_ / "model.safetensors.index.json", json_text(json));
    }
    TempFolder folder_;
    std::vector<SafetensorsShard> shards_;
};

TEST_F(SafetensorsShards, FormOneSet) {
    EXPECT_TRUE(SafetensorsSet::exists(folder_.path(), "model"));
    EXPECT_FALSE(SafetensorsSet::exists(folder_.path(), "other"));
    const SafetensorsSet set(folder_.path(), "model");
    EXPECT_EQ(set.names(), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(read_all(*set.find("b").file, "b"), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_FALSE(set.find("c"));
    expect_usage_error([&] { SafetensorsSet(folder_.path(), "other"); }, {"neither other.safetensors"});
}

TEST_F(SafetensorsShards, BadIndexIsNamed) {
    auto index = shard_index(shards_);
    index["weight_map"]["c"] = shards_[0].file;
    write_index(index);
    expect_usage_error([&] { SafetensorsSet(folder_.path(), "model"); }, {"tensor c is missing", "00001-of-00002"});
    index = shard_index(shards_);
    index["weight_map"]["a"] = "../model.safetensors";
    write_index(index);
    expect_usage_error([&] { SafetensorsSet(folder_.path(), "model"); }, {"../model.safetensors", "not the name"});
    write_index({{"metadata", 1}});
    expect_usage_error([&] { SafetensorsSet(folder_.path(), "model"); }, {"weight_map", "missing"});
    write_index(shard_index(shards_));
    std::filesystem::remove(folder_ / shards_[1].file);
    expect_usage_error([&] { SafetensorsSet(folder_.path(), "model"); }, {shards_[1].file.c_str(), "No such file"});
    std::filesystem::copy_file(folder_ / shards_[0].file, folder_ / shards_[1].file);
    expect_usage_error([&] { SafetensorsSet(folder_.path(), "model"); }, {"tensor a is also in"});
}

}  // namespace
}  // namespace tera
