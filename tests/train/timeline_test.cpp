#include "train/timeline.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/temp_folder.h"

namespace tera {
namespace {

std::vector<DeviceWork> work() {
    DeviceWork product{DeviceWork::Kind::kernel, "product \"a\"", 5000, 9000, {8, 1, 1}, 7, 0};
    DeviceWork copy{DeviceWork::Kind::copy, "copy host to device", 2000, 3500, {}, 13, 64};
    return {product, copy};
}

TEST(Timeline, times_begin_with_the_first_work_and_streams_are_rows) {
    const auto json = nlohmann::json::parse(timeline_text(work(), 3));
    const auto& events = json.at("traceEvents");
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0].at("args").at("name"), "rank 3");
    EXPECT_EQ(events[1].at("name"), "product \"a\"");
    EXPECT_EQ(events[1].at("ts"), 3.0);
    EXPECT_EQ(events[1].at("dur"), 4.0);
    EXPECT_EQ(events[1].at("tid"), 7);
    EXPECT_EQ(events[2].at("ts"), 0.0);
    EXPECT_EQ(events[2].at("args").at("bytes"), 64);
}

TEST(Timeline, a_file_for_each_rank) {
    const TempFolder folder;
    const std::string path = write_timeline(folder.path() + "/new", work(), 12);
    EXPECT_EQ(path, folder.path() + "/new/timeline-rank12.json");
    std::ifstream in(path);
    EXPECT_EQ(nlohmann::json::parse(in).at("traceEvents").size(), 3u);
    EXPECT_EQ(nlohmann::json::parse(timeline_text({}, 0)).at("traceEvents").size(), 1u);
}

}  // namespace
}  // namespace tera
