// What --load DIR means, and Megatron's lines about it.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <span>

#include "core/error.h"
#include "io/crc32c.h"
#include "io/json_file.h"
#include "io/safetensors.h"
#include "train/checkpoint.h"
#include "train/checkpoint_state.h"

namespace tera {
namespace fs = std::filesystem;
namespace {

bool exists(const std::string& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

bool holds_model(const std::string& folder) {
    return exists(folder + "/config.json") && SafetensorsSet::exists(folder, "model");
}

/// Says what a folder that we cannot read is, as far as its files tell.
[[noreturn]] void refuse_foreign(const std::string& folder) {
    if (exists(folder + "/metadata.json") || exists(folder + "/.metadata") || exists(folder + "/mp_rank_00") ||
        exists(folder + "/mp_rank_00_000")) {
        usage_error(folder,
                    " is a checkpoint in Megatron's own format, which is not read yet; convert it to Hugging Face "
                    "files and load those with --finetune");
    }
    if (exists(folder + "/pytorch_model.bin") || exists(folder + "/pytorch_model.bin.index.json")) {
        usage_error(folder,
                    " holds pytorch_model.bin, but only safetensors are read; save it again with "
                    "save_pretrained(..., safe_serialization=True)");
    }
    usage_error(folder, exists(folder + "/config.json") ? " holds no model.safetensors" : " holds no config.json");
}

CheckpointLocation location_of(const std::string& folder, const std::string& path) {
    if (!holds_model(path)) refuse_foreign(path);
    CheckpointLocation location;
    location.folder = folder;
    location.path = path;
    location.has_state = exists(path + "/training_state/state.json");
    return location;
}

CheckpointLocation at_iteration(const std::string& folder, std::int64_t iteration, const std::string& who) {
    std::string path = folder + "/" + iteration_folder(iteration);
    // A crash while a checkpoint of the same iteration was being replaced leaves the old one under this name.
    if (!exists(path) && exists(path + ".replaced")) path += ".replaced";
    if (!exists(path)) usage_error(who, " names iteration ", iteration, ", but ", path, " does not exist");
    CheckpointLocation location = location_of(folder, path);
    location.iteration = iteration;
    return location;
}

std::string trimmed(std::string text) {
    const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    while (!text.empty() && blank(text.back())) text.pop_back();
    while (!text.empty() && blank(text.front())) text.erase(text.begin());
    return text;
}

CheckpointLocation from_tracker(const std::string& folder, const std::string& tracker) {
    const std::string text = trimmed(read_text_file(tracker, 4096));
    if (text == "release") {
        CheckpointLocation location = location_of(folder, folder + "/release");
        location.release = true;
        return location;
    }
    const bool number = !text.empty() && text.size() <= 18 && text.find_first_not_of("0123456789") == std::string::npos;
    if (!number) usage_error(tracker, ": must hold an iteration or \"release\", not \"", text.substr(0, 40), "\"");
    return at_iteration(folder, std::stoll(text), tracker);
}

}  // namespace

std::optional<CheckpointLocation> find_checkpoint(const std::string& folder, std::optional<std::int64_t> step) {
    if (step) return at_iteration(folder, *step, "--ckpt-step");
    const std::string tracker = folder + "/" + tracker_name();
    if (exists(tracker)) return from_tracker(folder, tracker);
    if (!exists(folder + "/config.json")) {
        if (exists(folder + "/mp_rank_00") || exists(folder + "/.metadata")) refuse_foreign(folder);
        return std::nullopt;
    }
    CheckpointLocation location = location_of(folder, folder);
    if (location.has_state) location.iteration = read_checkpoint_state(location).iteration;
    return location;
}

std::string checkpoint_fingerprint(const CheckpointLocation& location) {
    const auto sum = [](std::uint32_t before, const std::string& text) {
        return crc32c(before, std::as_bytes(std::span(text)));
    };
    if (location.has_state) {
        const std::string text = read_text_file(location.path + "/training_state/state.json", std::size_t{1} << 30);
        return cat("that of iteration ", location.iteration, " with the checksum ", crc32c_text(sum(0, text)));
    }
    constexpr std::uint64_t beginning = 256;
    const SafetensorsSet model(location.path, "model");
    std::uint32_t crc = 0;
    for (const std::string& name : model.names()) {
        const SafetensorsSet::Found found = model.find(name);
        std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(beginning, found.entry->bytes)));
        found.file->read(*found.entry, 0, bytes);
        crc = crc32c(sum(crc, cat(name, " ", found.entry->bytes)), bytes);
    }
    return cat("a model of ", model.names().size(), " tensors with the checksum ", crc32c_text(crc));
}

CheckpointState read_checkpoint_state(const CheckpointLocation& location) {
    if (!location.has_state) {
        usage_error(location.path, " holds only model files, no training state; load it with --finetune");
    }
    return read_state_file(location.path + "/training_state/state.json").state;
}

HfModel read_checkpoint_model(const CheckpointLocation& location) {
    return read_hf_config(location.path + "/config.json");
}

// ---- Megatron's lines
// -------------------------------------------------------------------------------------------------

namespace {

std::string padded(std::int64_t iteration) {
    char text[32];
    std::snprintf(text, sizeof text, "%7lld", static_cast<long long>(iteration));
    return text;
}

std::string time_prefix(LogFormat format, const TimeStamp& now) {
    if (format != LogFormat::core_head) return "";
    char micro[16];
    std::snprintf(micro, sizeof micro, ".%06d", now.microseconds);
    return cat("[", now.text(), micro, "] ");
}

std::string ranks(const CheckpointLines& lines) {
    if (is_old(lines.format)) return "";
    const char* remat = lines.format == LogFormat::core_head ? ", gtp_remat 1/1" : "";
    return cat(" [ t 1/", lines.tp_size, remat, ", p 1/", lines.pp_size, " ]");
}

}  // namespace

std::string CheckpointLines::saving(std::int64_t iteration, const std::string& folder, const TimeStamp& now) const {
    return cat(time_prefix(format, now), "saving checkpoint at iteration ", padded(iteration), " to ", folder,
               is_old(format) ? "" : " in safetensors format");
}

std::string CheckpointLines::saved(std::int64_t iteration, const std::string& folder, const TimeStamp& now) const {
    return cat("  ", time_prefix(format, now), "successfully saved checkpoint ", is_old(format) ? "at" : "from",
               " iteration ", padded(iteration), " to ", folder, ranks(*this));
}

std::string CheckpointLines::loading(const CheckpointLocation& location) const {
    const char* kind = is_old(format) ? "" : "distributed ";
    if (location.release) return cat(" loading release ", kind, "checkpoint from ", location.folder);
    if (!location.has_state) return cat(" loading ", kind, "checkpoint from ", location.path);
    return cat(" loading ", kind, "checkpoint from ", location.folder, " at iteration ", location.iteration);
}

std::string CheckpointLines::version() const { return " checkpoint version 3.0"; }

std::string CheckpointLines::loaded(const CheckpointLocation& location, std::int64_t iteration,
                                    const TimeStamp& now) const {
    return cat("  ", time_prefix(format, now), "successfully loaded checkpoint from ", location.folder, ranks(*this),
               " at iteration ", iteration);
}

std::vector<std::string> CheckpointLines::missing(const std::string& folder) const {
    return {cat("WARNING: could not find the metadata file ", folder, "/", tracker_name()),
            "    will not load any checkpoints and will start from random"};
}

}  // namespace tera
