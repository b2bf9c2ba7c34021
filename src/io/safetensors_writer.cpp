#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/safetensors.h"

namespace tera {

std::string safetensors_header(const std::vector<TensorSpec>& tensors,
                               const std::map<std::string, std::string>& metadata) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    if (!metadata.empty()) json["__metadata__"] = metadata;
    std::uint64_t offset = 0;
    for (const TensorSpec& t : tensors) {
        nlohmann::ordered_json shape = nlohmann::ordered_json::array();
        for (int i = 0; i < t.shape.ndim; ++i) shape.push_back(t.shape[i]);
        // Built as pairs and not through operator[], which would search all earlier names for every new one.
        json.get_ref<nlohmann::ordered_json::object_t&>().push_back(
            {t.name, nlohmann::ordered_json{{"dtype", safetensors_dtype(t.dtype)},
                                            {"shape", std::move(shape)},
                                            {"data_offsets", {offset, offset + t.bytes()}}}});
        offset += t.bytes();
    }
    std::string text = json.dump();
    text.append((64 - (text.size() + 8) % 64) % 64, ' ');
    const std::uint64_t length = text.size();
    std::string header(8, '\0');
    std::memcpy(header.data(), &length, 8);
    return header + text;
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<TensorSpec> tensors,
                                     const std::map<std::string, std::string>& metadata, OutputFile::Mode mode)
    : tensors_(std::move(tensors)), checksums_(tensors_.size()), out_(path, mode) {
    const std::string header = safetensors_header(tensors_, metadata);
    file_size_ = header.size();
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
        offsets_.push_back(file_size_);
        file_size_ += tensors_[i].bytes();
        TERA_CHECK(by_name_.emplace(tensors_[i].name, i).second, "tensor ", tensors_[i].name, " twice in ", path);
    }
    if (mode == OutputFile::Mode::create) {
        out_.reserve(file_size_);
        out_.write_at(0, std::as_bytes(std::span(header.data(), header.size())));
    }
}

std::size_t SafetensorsWriter::index_of(const std::string& name) const {
    const auto found = by_name_.find(name);
    TERA_CHECK(found != by_name_.end(), "no tensor ", name, " in ", out_.path());
    return found->second;
}

void SafetensorsWriter::write(const std::string& name, std::uint64_t first, std::span<const std::byte> data) {
    const std::size_t i = index_of(name);
    TERA_CHECK(first <= tensors_[i].bytes() && data.size() <= tensors_[i].bytes() - first, name, ": bytes ", first, "+",
               data.size(), " of ", tensors_[i].bytes());
    checksums_[i].add(first, data);
    out_.write_at(offsets_[i] + first, data);
}

std::uint32_t SafetensorsWriter::checksum(const std::string& name) const {
    const std::size_t i = index_of(name);
    TERA_CHECK(checksums_[i].covers(tensors_[i].bytes()), name, " was not written whole");
    return checksums_[i].value();
}

std::vector<SafetensorsShard> plan_shards(const std::vector<TensorSpec>& tensors, const std::string& stem,
                                          std::uint64_t shard_bytes) {
    std::vector<SafetensorsShard> shards(1);
    std::uint64_t used = 0;
    for (const TensorSpec& t : tensors) {
        if (used > 0 && used + t.bytes() > shard_bytes) {
            shards.emplace_back();
            used = 0;
        }
        shards.back().tensors.push_back(t);
        used += t.bytes();
    }
    if (shards.size() == 1) {
        shards[0].file = stem + ".safetensors";
        return shards;
    }
    for (std::size_t i = 0; i < shards.size(); ++i) {
        char number[64];
        std::snprintf(number, sizeof number, "-%05zu-of-%05zu.safetensors", i + 1, shards.size());
        shards[i].file = stem + number;
    }
    return shards;
}

nlohmann::json shard_index(const std::vector<SafetensorsShard>& shards) {
    nlohmann::json map = nlohmann::json::object();
    std::uint64_t total = 0;
    for (const SafetensorsShard& shard : shards) {
        for (const TensorSpec& t : shard.tensors) {
            map[t.name] = shard.file;
            total += t.bytes();
        }
    }
    return {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
}

}  // namespace tera
