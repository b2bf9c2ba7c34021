#include "comm/progress.h"

#include <gtest/gtest.h>

namespace tera {
namespace {

DeviceCalls calls(std::int64_t begun, std::int64_t ended) {
    DeviceCalls c;
    c.given = 3;
    c.begun = begun;
    c.ended = ended;
    c.call = "all_reduce of 5 f32 over 2 ranks";
    return c;
}

TEST(Progress, a_rank_that_goes_on_is_where_its_device_is) {
    Progress progress;
    DeviceCalls now = calls(0, 0);
    progress.watch_device([&] { return std::vector<DeviceCalls>{now}; });
    progress.begin_step(4);
    progress.enqueue_call("broadcast of 1 f32 over 2 ranks");
    EXPECT_FALSE(progress.now().waiting) << "the device has not come to it";
    now = calls(1, 0);
    EXPECT_TRUE(progress.now().waiting);
    EXPECT_EQ(progress.now().text(), "step 4, in all_reduce of 5 f32 over 2 ranks for 0 s");
    now = calls(1, 1);
    EXPECT_FALSE(progress.now().waiting);
    EXPECT_EQ(progress.now().calls, 1);
    EXPECT_EQ(progress.now().device.size(), 1u);
    progress.watch_device({});
    EXPECT_EQ(progress.now().device.size(), 0u);
}

TEST(Progress, a_rank_that_waits_itself_is_there_whatever_its_device_does) {
    Progress progress;
    progress.watch_device([&] { return std::vector<DeviceCalls>{calls(1, 0)}; });
    progress.begin_call("barrier");
    EXPECT_EQ(progress.now().call, "barrier");
    EXPECT_TRUE(progress.now().waiting);
    progress.end_call();
    EXPECT_NE(progress.now().call, "barrier");
}

}  // namespace
}  // namespace tera
