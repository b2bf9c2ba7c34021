#include "train/metrics.h"

#include <cerrno>
#include <cmath>
#include <cstring>
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

/// The lines up to and including `iteration`.
Kept lines_until(const std::string& path, std::int64_t iteration) {
    Kept kept;
    std::ifstream in(path);
    std::string line;
    while (std::getline(in, line)) {
        const auto json = nlohmann::json::parse(line, nullptr, false);
        const bool whole = json.is_object() && json.contains("iteration") && json["iteration"].is_number_integer();
        if (whole && json["iteration"].get<std::int64_t>() <= iteration)
            kept.text += line + "\n";
        else
            ++kept.dropped;
    }
    return kept;
}

}  // namespace

MetricsFile::MetricsFile(const std::string& path, std::int64_t iteration) : path_(path) {
    if (path.empty()) return;
    make_folders(folder_of(path));
    const Kept kept = lines_until(path, iteration);
    dropped_ = kept.dropped;
    if (kept.dropped > 0 || kept.text.empty()) write_file_durably(path, kept.text);
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
    if (std::fprintf(file_, "%s\n", line.c_str()) < 0 || std::ferror(file_)) {
        usage_error("cannot write the metrics file ", path_, ": ", std::strerror(errno));
    }
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
