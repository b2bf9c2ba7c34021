#include "train/checkpoint_state.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/build_info.h"
#include "core/error.h"
#include "io/crc32c.h"
#include "io/json_file.h"

namespace tera {
namespace {
using nlohmann::json;

bool all_finite(const json& j) {
    if (j.is_number_float()) return std::isfinite(j.get<double>());
    return !j.is_structured() || std::all_of(j.begin(), j.end(), all_finite);
}

std::string checksum_of(const json& j) {
    const std::string text = j.dump();
    return crc32c_text(crc32c(0, std::as_bytes(std::span(text))));
}

json files_json(const std::map<std::string, FileRecord>& files) {
    json out = json::object();
    for (const auto& [path, record] : files) out[path] = {{"bytes", record.bytes}, {"crc32c", record.checksums}};
    return out;
}

std::map<std::string, FileRecord> parse_files(const JsonObject& o) {
    std::map<std::string, FileRecord> files;
    for (const auto& item : o.json().items()) {
        const JsonObject entry = o.object(item.key());
        FileRecord& record = files[item.key()];
        record.bytes = static_cast<std::uint64_t>(entry.integer("bytes"));
        const JsonObject sums = entry.object("crc32c");
        for (const auto& sum : sums.json().items()) record.checksums[sum.key()] = sums.text(sum.key());
    }
    return files;
}

json object_of(const JsonObject& o, const char* key) { return o.object(key).json(); }

}  // namespace

std::string state_file_text(const StateFile& file) {
    const CheckpointState& s = file.state;
    TERA_CHECK(all_finite(s.scheduler) && all_finite(s.loss_scaler) && all_finite(s.optimizer) &&
                   std::isfinite(s.floating_point_operations),
               "a number in the training state is not finite");
    json j = {{"format", "teratron checkpoint"},
              {"format_version", checkpoint_format_version},
              {"written_by", cat("teratron ", build_info().version)},
              {"iteration", s.iteration},
              {"consumed_train_samples", s.consumed_train_samples},
              {"consumed_valid_samples", s.consumed_valid_samples},
              {"skipped_train_samples", s.skipped_train_samples},
              {"floating_point_operations", s.floating_point_operations},
              {"seed", s.seed},
              {"scheduler", s.scheduler},
              {"loss_scaler", s.loss_scaler},
              {"optimizer", s.optimizer},
              {"arguments", s.arguments},
              {"model", model_config_to_json(file.model)},
              {"architecture", file.architecture},
              {"optimizer_tensors", file.kinds},
              {"files", files_json(file.files)}};
    // The checksum is of what a reader will get: numbers that are not finite become null in the text.
    j = json::parse(j.dump());
    j["checksum"] = checksum_of(j);
    return json_text(j);
}

StateFile read_state_file(const std::string& path) {
    json j = read_json_file(path);
    if (const JsonObject o(j, path); o.has("checksum")) {
        const std::string expected = o.text("checksum");
        j.erase("checksum");
        if (checksum_of(j) != expected) {
            usage_error(path,
                        ": does not match its checksum; restore it, or load an earlier checkpoint with --ckpt-step");
        }
    }
    const JsonObject o(j, path);
    const std::int64_t version = o.integer("format_version");
    if (version > checkpoint_format_version) {
        usage_error(path, ": format version ", version, " is newer than this program (", checkpoint_format_version,
                    "); load it with the program that wrote it or a later one");
    }
    StateFile file;
    CheckpointState& s = file.state;
    s.iteration = o.integer("iteration");
    s.consumed_train_samples = o.integer("consumed_train_samples");
    s.consumed_valid_samples = o.integer("consumed_valid_samples");
    s.skipped_train_samples = o.integer("skipped_train_samples");
    s.floating_point_operations = o.real("floating_point_operations");
    if (!o.value("seed").is_number_unsigned()) o.fail("seed", "must be a non-negative integer");
    s.seed = o.value("seed").get<std::uint64_t>();
    s.scheduler = object_of(o, "scheduler");
    s.loss_scaler = object_of(o, "loss_scaler");
    s.optimizer = object_of(o, "optimizer");
    s.arguments = object_of(o, "arguments");
    file.model = model_config_from_json(o.value("model"), path + ": model");
    file.architecture = o.text("architecture");
    for (const json& kind : o.value("optimizer_tensors")) {
        if (!kind.is_string()) o.fail("optimizer_tensors", "must be a list of texts");
        file.kinds.push_back(kind.get<std::string>());
    }
    file.files = parse_files(o.object("files"));
    return file;
}

std::string iteration_folder(std::int64_t iteration) {
    char name[40];
    std::snprintf(name, sizeof name, "iter_%07lld", static_cast<long long>(iteration));
    return name;
}

std::int64_t parse_iteration_folder(const std::string& name) {
    constexpr std::size_t prefix = 5;
    if (name.rfind("iter_", 0) != 0 || name.size() < prefix + 7 || name.size() > prefix + 18) return -1;
    if (!std::all_of(name.begin() + prefix, name.end(), [](char c) { return c >= '0' && c <= '9'; })) return -1;
    const std::int64_t iteration = std::stoll(name.substr(prefix));
    return iteration_folder(iteration) == name ? iteration : -1;
}

}  // namespace tera
