#include "core/readback.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tera {
namespace {

TEST(Readback, HoldsTheBytesAsTheyWereWhenStarted) {
    ThreadPool pool(1);
    Exec exec{Device::cpu, nullptr, &pool};
    double value[3] = {1, 2, 3};
    Readback back(sizeof value, nullptr);
    EXPECT_THROW(back.wait(), Error);
    back.start(exec, tensor_over(value, Shape{3}));
    value[1] = 7;
    const auto* got = static_cast<const double*>(back.wait());
    EXPECT_EQ(got[0], 1);
    EXPECT_EQ(got[1], 2);
    EXPECT_EQ(got[2], 3);
    back.start(exec, tensor_over(value, Shape{2}));
    EXPECT_EQ(static_cast<const double*>(back.wait())[1], 7);
    EXPECT_EQ(static_cast<const double*>(back.wait())[1], 7) << "asked for again";
    double larger[4] = {};
    EXPECT_THROW(back.start(exec, tensor_over(larger, Shape{4})), Error);
}

}  // namespace
}  // namespace tera
