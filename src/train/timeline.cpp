#include "train/timeline.h"

#include <nlohmann/json.hpp>

#include <algorithm>

#include "core/error.h"
#include "io/durable_file.h"

namespace tera {

std::string timeline_text(const std::vector<DeviceWork>& work, std::int64_t rank) {
    std::uint64_t first = work.empty() ? 0 : work.front().start_ns;
    for (const DeviceWork& w : work) first = std::min(first, w.start_ns);
    nlohmann::json events = nlohmann::json::array();
    events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", rank}, {"args", {{"name", cat("rank ", rank)}}}});
    for (const DeviceWork& w : work) {
        nlohmann::json event = {{"name", w.name},
                                {"ph", "X"},
                                {"pid", rank},
                                {"tid", w.stream},
                                {"ts", static_cast<double>(w.start_ns - first) / 1000},
                                {"dur", static_cast<double>(w.end_ns - w.start_ns) / 1000}};
        if (w.bytes > 0) event["args"] = {{"bytes", w.bytes}};
        events.push_back(std::move(event));
    }
    return nlohmann::json{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}}.dump();
}

std::string write_timeline(const std::string& folder, const std::vector<DeviceWork>& work, std::int64_t rank) {
    make_folders(folder);
    const std::string path = cat(folder, "/timeline-rank", rank, ".json");
    write_file_durably(path, timeline_text(work, rank));
    return path;
}

}  // namespace tera
