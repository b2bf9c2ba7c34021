#include "train/metrics.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "io/durable_file.h"

namespace tera {
namespace {

using Json = nlohmann::ordered_json;

std::string key_of(std::string loss_name) {
    for (char& c : loss_name) {
        if (c == ' ') c = '_';
    }
    return loss_name;
}

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); }
Json number(const std::optional<double>& x) { return x ? number(*x) : Json(nullptr); }

struct Kept {
    std::string text;
    std::int64_t dropped = 0;
};

/// The lines up to and including `iteration`. UsageError for a file of something else; a last line cut short is not.
Kept lines_until(const std::string& path, std::int64_t iteration) {
    Kept kept;
    std::ifstream in(path);
    std::string line;
    for (std::int64_t number = 1; std::getline(in, line); ++number) {
        const auto json = nlohmann::json::parse(line, nullptr, false);
        const bool whole = json.is_object() && json.contains("iteration") && json["iteration"].is_number_integer();
        if (!whole && (!in.eof() || number == 1))
            usage_error("the metrics file ", path, " is there and line ", number,
                        " is no line of metrics; choose another name, or remove it");
        if (whole && json["iteration"].get<std::int64_t>() <= iteration)
            kept.text += line + "\n";
        else
            ++kept.dropped;
    }
    return kept;
}

/// Gives a file another name: with .1 behind it, or the first number that is free.
std::string move_aside(const std::string& path) {
    for (int n = 1;; ++n) {
        std::string other = cat(path, ".", n);
        if (std::filesystem::exists(other)) continue;
        std::error_code error;
        std::filesystem::rename(path, other, error);
        if (error) usage_error("cannot rename the metrics file ", path, ": ", error.message());
        return other;
    }
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path, std::int64_t iteration, Tell tell)
    : path_(path), tell_(std::move(tell)) {
    if (path.empty()) return;
    make_folders(folder_of(path));
    std::error_code unknown;
    if (const auto kind = std::filesystem::status(path, unknown).type(); kind == std::filesystem::file_type::regular) {
        const Kept kept = lines_until(path, iteration);
        if (iteration == 0 && kept.dropped > 0) {
            const std::string aside = move_aside(path);
            if (tell_) tell_(cat("> ", path, ": that of an earlier run is now ", aside));
        } else {
            dropped_ = kept.dropped;
            if (kept.dropped > 0) write_file_durably(path, kept.text);
        }
    }
    file_ = std::fopen(path.c_str(), "a");
    if (file_ == nullptr) usage_error("cannot write the metrics file ", path, ": ", std::strerror(errno));
    std::setvbuf(file_, nullptr, _IOLBF, 1 << 16);
    if (iteration > 0) write(Json{{"iteration", iteration}, {"event", "resume"}}.dump());
}

MetricsFile::~MetricsFile() {
    if (file_ != nullptr) std::fclose(file_);
}

void MetricsFile::write(const std::string& line) {
    if (file_ == nullptr) return;
    if (std::fprintf(file_, "%s\n", line.c_str()) >= 0 && !std::ferror(file_)) return;
    const std::string why = std::strerror(errno);
    std::fclose(file_);
    file_ = nullptr;
    if (tell_) tell_(cat("WARNING: cannot write the metrics file ", path_, ": ", why, "; the run goes on without it"));
}

void MetricsFile::step(const StepReport& r, double tokens_per_second) {
    if (file_ == nullptr) return;
    Json line = {{"iteration", r.iteration}, {"consumed_samples", r.consumed_samples}};
    for (const auto& [name, value] : r.losses) line[key_of(name)] = number(value);
    line["learning_rate"] = number(r.learning_rate);
    line["grad_norm"] = number(r.grad_norm);
    line["loss_scale"] = number(r.loss_scale);
    line["elapsed_ms"] = number(r.elapsed_ms);
    line["tokens_per_second"] = number(tokens_per_second);
    if (r.skipped_iterations > 0) line["skipped_iterations"] = r.skipped_iterations;
    write(line.dump());
}

void MetricsFile::evaluation(std::int64_t iteration, const std::string& what, const NamedLosses& losses) {
    if (file_ == nullptr) return;
    Json values = Json::object();
    for (const auto& [name, value] : losses) values[key_of(name)] = number(value);
    if (!losses.empty()) values["ppl"] = number(perplexity(losses.front().second));
    write(Json{{"iteration", iteration}, {what, values}}.dump());
}

}  // namespace tera
