#include "comm/progress.h"

#include <gtest/gtest.h>

namespace tera {
namespace {

TEST(Progress, a_call_on_a_device_lasts_until_the_device_is_done) {
    Progress progress;
    bool done = false;
    progress.begin_step(4);
    progress.enqueue_call("all_reduce of 5 f32 over 2 ranks", [&] { return done; });
    EXPECT_TRUE(progress.now().waiting);
    EXPECT_EQ(progress.now().text(), "step 4, in all_reduce of 5 f32 over 2 ranks for 0 s");
    done = true;
    EXPECT_FALSE(progress.now().waiting);
    EXPECT_EQ(progress.now().calls, 1);
}

TEST(Progress, the_next_call_forgets_the_device) {
    Progress progress;
    int asked = 0;
    progress.enqueue_call("broadcast", [&] { return ++asked, true; });
    progress.begin_call("barrier");
    EXPECT_TRUE(progress.now().waiting) << "inside the barrier, whatever the device does";
    progress.end_call();
    EXPECT_FALSE(progress.now().waiting);
    EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace tera
