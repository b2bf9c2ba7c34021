#include "train/control.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include "support/temp_folder.h"

namespace tera {
namespace {

ControlSettings settings() {
    ControlSettings s;
    s.can_save = true;
    s.save_interval = 10;
    s.exit_interval = 40;
    s.exit_minutes = 5;
    s.log_interval = 2;
    s.exit_trigger = "T/exit";
    return s;
}

TEST(Control, NothingToDoBetweenTheIntervals) {
    const Verdict v = judge(settings(), {7, false, 1.0, false, false});
    EXPECT_FALSE(v.save || v.stop || v.remove_save_trigger);
}

TEST(Control, SignalComesFirstAndSaves) {
    const Verdict v = judge(settings(), {40, true, 10, true, true});
    EXPECT_TRUE(v.save);
    EXPECT_TRUE(v.stop);
    EXPECT_EQ(v.message, "exiting program after receiving SIGTERM.");
    EXPECT_FALSE(v.remove_save_trigger);
}

TEST(Control, IntervalsTimeAndTheirMessages) {
    EXPECT_TRUE(judge(settings(), {20, false, 1, false, false}).save);
    EXPECT_FALSE(judge(settings(), {20, false, 1, false, false}).stop);
    const Verdict time = judge(settings(), {7, false, 5.25, false, false});
    EXPECT_TRUE(time.save && time.stop);
    EXPECT_EQ(time.message, "exiting program after 5.25 minutes");
    EXPECT_FALSE(judge(settings(), {7, false, 5.0, false, false}).stop) << "only when exceeded";
    const Verdict interval = judge(settings(), {40, false, 1, false, false});
    EXPECT_TRUE(interval.save && interval.stop);
    EXPECT_EQ(interval.message, "exiting program at iteration 40");
}

TEST(Control, TriggersAreReadAtLogIntervalsAndExitDoesNotSave) {
    EXPECT_FALSE(judge(settings(), {7, false, 1, true, true}).stop);
    const Verdict save = judge(settings(), {8, false, 1, true, false});
    EXPECT_TRUE(save.save && save.remove_save_trigger);
    EXPECT_FALSE(save.stop);
    const Verdict leave = judge(settings(), {8, false, 1, false, true});
    EXPECT_TRUE(leave.stop);
    EXPECT_FALSE(leave.save);
    const Verdict both = judge(settings(), {8, false, 1, true, true});
    EXPECT_TRUE(both.save && both.stop);
}

TEST(Control, WithoutASaveFolderNothingIsSaved) {
    ControlSettings s = settings();
    s.can_save = false;
    EXPECT_FALSE(judge(s, {40, false, 1, false, false}).save);
    EXPECT_FALSE(judge(s, {40, true, 1, false, false}).save);
}

TEST(Triggers, AreFilesInAFolder) {
    const TempFolder folder;
    const Triggers triggers{folder.path()};
    EXPECT_TRUE(triggers.on());
    EXPECT_FALSE(triggers.save_asked() || triggers.exit_asked());
    std::ofstream(triggers.save_path()) << "";
    EXPECT_TRUE(triggers.save_asked());
    triggers.remove_save();
    EXPECT_FALSE(triggers.save_asked());
    triggers.touch_exit();
    EXPECT_TRUE(triggers.exit_asked());
    EXPECT_FALSE(Triggers("").on());
    EXPECT_FALSE(Triggers("/dev/null").on());
    Triggers("/nowhere/at/all").touch_exit();
}

TEST(SignalWatch, RemembersAndRestores) {
    struct sigaction before {
    }, after{};
    sigaction(SIGUSR2, nullptr, &before);
    {
        SignalWatch watch(SIGUSR2);
        EXPECT_FALSE(watch.seen());
        raise(SIGUSR2);
        EXPECT_TRUE(watch.seen());
    }
    sigaction(SIGUSR2, nullptr, &after);
    EXPECT_EQ(before.sa_handler, after.sa_handler);
    SignalWatch fresh(SIGUSR2);
    EXPECT_FALSE(fresh.seen());
}

}  // namespace
}  // namespace tera
