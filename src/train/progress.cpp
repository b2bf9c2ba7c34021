#include "train/progress.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "core/error.h"
#include "io/durable_file.h"

namespace tera {
namespace {

std::vector<std::string> split_tabs(const std::string& line) {
    std::vector<std::string> parts;
    std::size_t begin = 0;
    for (;;) {
        const std::size_t end = line.find('\t', begin);
        parts.push_back(line.substr(begin, end - begin));
        if (end == std::string::npos) return parts;
        begin = end + 1;
    }
}

/// The number after ": ".
double value_of(const std::string& field) {
    const std::size_t colon = field.find(": ");
    return colon == std::string::npos ? 0 : std::strtod(field.c_str() + colon + 2, nullptr);
}

}  // namespace

ProgressHistory read_progress(const std::string& path, std::int64_t gpus) {
    ProgressHistory history;
    double latest = 0;
    std::ifstream in(path);
    std::string line;
    while (std::getline(in, line)) {
        const std::vector<std::string> parts = split_tabs(line);
        if (parts.size() < 4) continue;
        if (parts[3] == "Saved checkpoint" && parts.size() > 7) latest = value_of(parts[7]);
        if (static_cast<std::int64_t>(value_of(parts[2])) != gpus) {
            history = {};
            continue;
        }
        if (parts[3] != "Starting job" || history.start.seconds != 0) continue;
        if (const auto time = TimeStamp::parse(parts[0])) history = {*time, latest};
    }
    return history;
}

ProgressLog::ProgressLog(const Settings& settings) : settings_(settings), job_start_(TimeStamp::now()) {}

void ProgressLog::append(const std::string& text) const {
    if (settings_.folder.empty()) return;
    make_folders(settings_.folder);
    const std::string path = settings_.folder + "/progress.txt";
    const std::string line = progress_prefix(TimeStamp::now(), settings_.job_id, settings_.gpus) + text + "\n";
    std::FILE* file = std::fopen(path.c_str(), "a");
    if (file == nullptr) usage_error("cannot write ", path, ": ", std::strerror(errno));
    const bool written = std::fwrite(line.data(), 1, line.size(), file) == line.size();
    if (std::fclose(file) != 0 || !written) usage_error("cannot write ", path, ": ", std::strerror(errno));
}

void ProgressLog::starting() const { append("Starting job"); }

void ProgressLog::saved(std::int64_t iteration, double flops_so_far, double tokens_so_far) const {
    if (settings_.folder.empty()) return;
    const ProgressHistory history = read_progress(settings_.folder + "/progress.txt", settings_.gpus);
    const TimeStamp now = TimeStamp::now();
    auto seconds_from = [&](const TimeStamp& start) {
        const double s = static_cast<double>(now.seconds - start.seconds) +
                         1e-6 * static_cast<double>(now.microseconds - start.microseconds);
        return s > 0 ? s : 1e-6;
    };
    const double gpus = static_cast<double>(settings_.gpus);
    const double job = seconds_from(job_start_) * gpus;
    const TimeStamp first = history.start.seconds != 0 ? history.start : job_start_;
    const double all = seconds_from(first) * gpus;
    // Tokens grow with the operations, so the share done before the first job of this size is the same.
    const double before = flops_so_far > 0 ? history.start_flops / flops_so_far : 0;
    ProgressReport report;
    report.iteration = iteration;
    report.job_tflops = (flops_so_far - settings_.flops_so_far) / (job * 1e12);
    report.cumulative_tflops = (flops_so_far - history.start_flops) / (all * 1e12);
    report.floating_point_operations = flops_so_far;
    report.tokens_in_billions = tokens_so_far / 1e9;
    report.job_tokens = (tokens_so_far - settings_.tokens_so_far) / job;
    report.cumulative_tokens = tokens_so_far * (1 - before) / all;
    append(progress_saved(settings_.format, report));
}

}  // namespace tera
