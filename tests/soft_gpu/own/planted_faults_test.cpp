// Each fault that is planted is found and named, whatever order the warps come in; its twin that is right runs.
#include "soft_gpu/own/planted_faults.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ostream>
#include <regex>
#include <string>

extern "C" int soft_gpu_faults();
extern "C" void soft_gpu_forget_faults();

namespace soft_gpu_own {

void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.name; }

namespace {

constexpr int orders = 6;

/// Other orders of warps, as long as it lives.
class Order {
  public:
    explicit Order(int i) {
        if (const char* text = std::getenv("SOFT_GPU_SEED")) before_ = text;
        const long first = before_.empty() ? 0 : std::strtol(before_.c_str(), nullptr, 10);
        setenv("SOFT_GPU_SEED", std::to_string(first + i).c_str(), 1);
    }
    ~Order() {
        if (before_.empty())
            unsetenv("SOFT_GPU_SEED");
        else
            setenv("SOFT_GPU_SEED", before_.c_str(), 1);
    }
    Order(const Order&) = delete;
    Order& operator=(const Order&) = delete;

  private:
    std::string before_;
};

struct Outcome {
    std::string text;
    int faults;
    bool right;
    cudaError_t error;
};

template <class F>
Outcome watch(F f) {
    const int before = soft_gpu_faults();
    testing::internal::CaptureStderr();
    const bool right = f();
    const cudaError_t error = cudaGetLastError();
    return {testing::internal::GetCapturedStderr(), soft_gpu_faults() - before, right, error};
}

std::size_t lines(const std::string& text) {
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

class PlantedFault : public testing::TestWithParam<Plant> {};

TEST_P(PlantedFault, IsFoundAndItsTwinIsRight) {
    for (int i = 0; i < orders; ++i) {
        SCOPED_TRACE("order " + std::to_string(i));
        const Order order(i);
        const Outcome wrong = watch([] { return GetParam().run(true); });
        EXPECT_TRUE(std::regex_search(wrong.text, std::regex(GetParam().says))) << wrong.text;
        EXPECT_EQ(wrong.text.rfind("soft GPU: ", 0), 0u) << wrong.text;
        EXPECT_EQ(lines(wrong.text), 1u) << wrong.text;
        EXPECT_EQ(wrong.faults, 1);
        EXPECT_EQ(wrong.error, cudaErrorIllegalAddress);
        EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
        soft_gpu_forget_faults();

        const Outcome right = watch([] { return GetParam().run(false); });
        EXPECT_EQ(right.text, "");
        EXPECT_EQ(right.faults, 0);
        EXPECT_EQ(right.error, cudaSuccess);
        EXPECT_TRUE(right.right);
        soft_gpu_forget_faults();
    }
}

std::string name_of(const testing::TestParamInfo<Plant>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(InMemory, PlantedFault, testing::ValuesIn(plants_in_memory()), name_of);
INSTANTIATE_TEST_SUITE_P(BetweenThreads, PlantedFault, testing::ValuesIn(plants_between_threads()), name_of);
INSTANTIATE_TEST_SUITE_P(OfCopies, PlantedFault, testing::ValuesIn(plants_of_copies()), name_of);
INSTANTIATE_TEST_SUITE_P(OfProducts, PlantedFault, testing::ValuesIn(plants_of_products()), name_of);
INSTANTIATE_TEST_SUITE_P(InDetail, PlantedFault, testing::ValuesIn(plants_in_detail()), name_of);

TEST(AfterAFault, EveryCallFailsUntilItIsForgotten) {
    const Plant fault = plants_in_memory().front();
    EXPECT_EQ(watch([&] { return fault.run(true); }).faults, 1);
    const Outcome after = watch([&] { return fault.run(false); });
    EXPECT_FALSE(after.right);
    EXPECT_EQ(after.faults, 0);
    EXPECT_EQ(after.error, cudaErrorIllegalAddress);
    soft_gpu_forget_faults();
    EXPECT_TRUE(fault.run(false));
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

/// Is said and answered; the device stays sound.
template <class F>
void expect_refused(F launch, cudaError_t with, const char* says) {
    const Outcome outcome = watch([&] { return launch(), true; });
    EXPECT_NE(outcome.text.find("not launched"), std::string::npos) << outcome.text;
    EXPECT_NE(outcome.text.find(says), std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.faults, 0);
    EXPECT_EQ(outcome.error, with);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}
template <class F>
void expect_launched(F launch) {
    const Outcome outcome = watch([&] { return launch(), true; });
    EXPECT_EQ(outcome.text, "");
    EXPECT_EQ(outcome.error, cudaSuccess);
}

TEST(Launch, HasUpTo1024Threads) {
    expect_launched([] { launch_with_threads(1024); });
    expect_refused([] { launch_with_threads(1025); }, cudaErrorInvalidConfiguration, "1025");
    expect_refused([] { launch_with_threads(0); }, cudaErrorInvalidConfiguration, "threads");
}

TEST(Launch, HasNoMoreThreadsThanItsBounds) {
    expect_launched([] { launch_bounded_with_threads(64); });
    expect_refused([] { launch_bounded_with_threads(96); }, cudaErrorInvalidValue, "bounds");
}

TEST(Launch, HasMuchSharedMemoryOnlyIfItHasAskedForIt) {
    constexpr unsigned by_default = 48 << 10, most = 227 << 10;
    expect_launched([] { launch_with_shared_memory(by_default); });
    expect_refused([] { launch_with_shared_memory(by_default + 4); }, cudaErrorInvalidValue, "shared memory");
    expect_launched([] { launch_with_shared_memory_asked_for(most); });
    expect_refused([] { launch_with_shared_memory_asked_for(most + 4); }, cudaErrorInvalidValue, "shared memory");
}

/// No fault that is named: there is no number in them yet.
TEST(WarpGroup, SumsAreThereWhenTheyWereWaitedFor) {
    for (const float x : product_of_ones(true)) EXPECT_EQ(x, 64);
    for (const float x : product_of_ones(false)) EXPECT_TRUE(std::isnan(x));
    const auto two = two_products_of_ones();
    for (const float x : two[0]) EXPECT_EQ(x, 64);
    for (const float x : two[1]) EXPECT_TRUE(std::isnan(x));
}

TEST(WarpGroup, ProductIsThatOfALoop) {
    constexpr std::size_t rows = 64, columns = 128, depth = 64;
    std::vector<float> a(rows * depth), b(depth * columns), expected(rows * columns);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(static_cast<int>(i * 7 % 23) - 11);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(static_cast<int>(i * 5 % 31) - 15) / 4;
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t n = 0; n < columns; ++n)
            for (std::size_t k = 0; k < depth; ++k) expected[i * columns + n] += a[i * depth + k] * b[k * columns + n];
    EXPECT_EQ(product(true, a, b), expected);
    EXPECT_EQ(product(false, a, b), expected);
}

}  // namespace
}  // namespace soft_gpu_own
