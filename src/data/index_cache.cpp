#include "data/index_cache.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "core/error.h"
#include "data/md5.h"
#include "io/durable_file.h"
#include "io/json_file.h"

namespace tera {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string python_text(const Json& json) { return json.dump(4, ' ', true, Json::error_handler_t::replace); }

Json split_matrix(const SplitPlan& plan) {
    Json matrix = Json::array();
    for (const SplitBounds& b : plan.bounds) {
        if (!b.present()) {
            matrix.push_back(nullptr);
            continue;
        }
        // The running sum begins with Python's integer 0, which shows if the first split is present.
        Json begin = b.begin;
        if (&b == &plan.bounds[0]) begin = 0;
        matrix.push_back(Json::array({begin, b.end}));
    }
    return matrix;
}

Json tokenizer_json(const TokenizerIdentity& tokenizer) {
    Json json;
    json["class"] = tokenizer.class_name;
    json["tokenizer_path"] = Json::array();
    for (const std::string& path : tokenizer.paths)
        json["tokenizer_path"].push_back(path.empty() ? Json(nullptr) : Json(path));
    for (const auto& [key, value] : tokenizer.options) json[key] = value;
    return json;
}

/// Another process on another machine may write the same file at this moment.
std::string unique_suffix() {
    std::random_device random;
    char text[48];
    std::snprintf(text, sizeof text, ".tmp-%08x%08x", random(), random());
    return text;
}

template <class Write>
void write_by_renaming(const std::string& path, const Write& write) {
    const std::string temporary = path + unique_suffix();
    try {
        write(temporary);
        if (std::rename(temporary.c_str(), path.c_str()) != 0)
            usage_error("cannot rename ", temporary, " to ", path, ": ", std::strerror(errno));
    } catch (...) {
        ::unlink(temporary.c_str());
        throw;
    }
}

std::string part_path(const std::string& stem, const char* name) { return cat(stem, name, ".npy"); }

}  // namespace

std::string describe(const GptIdentity& identity) {
    Json json;
    json["class"] = identity.class_name;
    json["dataset_path"] = identity.dataset_path.empty() ? Json(nullptr) : Json(identity.dataset_path);
    json["num_samples"] = identity.num_samples ? Json(*identity.num_samples) : Json(nullptr);
    json["index_split"] = split_name(identity.index_split);
    json["random_seed"] = identity.random_seed;
    json["sequence_length"] = identity.sequence_length;
    json["split"] = identity.split ? Json(identity.split->text) : Json(nullptr);
    json["split_matrix"] = identity.split ? split_matrix(*identity.split) : Json(nullptr);
    json["tokenizer"] = tokenizer_json(identity.tokenizer);
    return python_text(json);
}

std::string describe_blend(const std::vector<std::string>& datasets, Split split, const std::vector<double>& weights,
                           std::optional<std::int64_t> size) {
    Json json;
    json["class"] = "BlendedDataset";
    json["datasets"] = Json::array();
    for (const std::string& d : datasets) json["datasets"].push_back(Json::parse(d));
    json["split"] = split_name(split);
    json["weights"] = Json::array();
    for (const double w : weights)
        json["weights"].push_back(size ? Json(w) : Json(static_cast<std::int64_t>(w)));  // no size: numbers of samples
    json["size"] = size ? Json(*size) : Json(nullptr);
    return python_text(json);
}

std::string IndexCache::stem(const std::string& description, const std::string& class_and_split) const {
    return cat(folder_, "/", md5_hex(description), "-", class_and_split, "-");
}

std::optional<std::vector<NpyArray>> IndexCache::load(const std::string& description,
                                                      const std::string& class_and_split,
                                                      const std::vector<Part>& parts,
                                                      std::vector<std::string>& notes) const {
    if (!enabled()) return std::nullopt;
    const std::string base = stem(description, class_and_split);
    std::error_code ignored;
    if (!fs::exists(base + "description.txt", ignored)) return std::nullopt;
    for (const Part& part : parts)
        if (!fs::exists(part_path(base, part.name), ignored)) return std::nullopt;
    try {
        if (read_text_file(base + "description.txt") != description)
            usage_error(base, "description.txt: is not the description it is named after");
        std::vector<NpyArray> arrays;
        for (const Part& part : parts) {
            arrays.push_back(read_npy(part_path(base, part.name)));
            if (arrays.back().type() != part.type || arrays.back().shape() != part.shape)
                usage_error(part_path(base, part.name), ": type or shape is not what the data gives");
        }
        return arrays;
    } catch (const UsageError& e) {
        notes.push_back(cat("index cache not used, building anew: ", e.what()));
        return std::nullopt;
    }
}

void IndexCache::store(const std::string& description, const std::string& class_and_split,
                       const std::vector<Part>& parts, const std::vector<NpyArray>& arrays,
                       std::vector<std::string>& notes) const {
    if (!enabled() || !writable_) return;
    TERA_CHECK(parts.size() == arrays.size(), class_and_split);
    try {
        make_folders(folder_);
        const std::string base = stem(description, class_and_split);
        for (std::size_t i = 0; i < parts.size(); ++i)
            write_by_renaming(part_path(base, parts[i].name),
                              [&](const std::string& path) { write_npy(path, arrays[i]); });
        write_by_renaming(base + "description.txt", [&](const std::string& path) {
            OutputFile file(path, OutputFile::Mode::create);
            file.append(description);
            file.sync();
            file.close();
        });
        sync_folder(folder_);
    } catch (const UsageError& e) {
        notes.push_back(cat("index cache not written: ", e.what()));
    }
}

}  // namespace tera
