// Work on several streams: what nothing puts in order is a fault, and what an event, the host or the default stream
// puts in order is none.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

extern "C" int soft_gpu_faults();
extern "C" void soft_gpu_forget_faults();

namespace soft_gpu_own {
namespace {

constexpr std::size_t bytes = 4096;

class Streams : public testing::Test {
  protected:
    Streams() {
        for (cudaStream_t* stream : {&a, &b}) (void)cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking);
        for (void** data : {&memory, &other}) (void)cudaMalloc(data, bytes);
        (void)cudaMallocHost(&pinned, bytes);
        (void)cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        (void)cudaMemset(memory, 1, bytes);
        (void)cudaMemset(other, 1, bytes);
        (void)cudaDeviceSynchronize();
    }
    ~Streams() override {
        soft_gpu_forget_faults();
        (void)cudaDeviceSynchronize();
        (void)cudaFree(memory);
        (void)cudaFree(other);
        (void)cudaFreeHost(pinned);
        (void)cudaEventDestroy(event);
        for (cudaStream_t stream : {a, b}) (void)cudaStreamDestroy(stream);
    }

    void write(cudaStream_t on) { (void)cudaMemsetAsync(memory, 2, bytes, on); }
    void read(cudaStream_t on) { (void)cudaMemcpyAsync(other, memory, bytes, cudaMemcpyDeviceToDevice, on); }
    void read_to_host(cudaStream_t on) { (void)cudaMemcpyAsync(pinned, memory, bytes, cudaMemcpyDeviceToHost, on); }

    /// What is said of f, which must be a fault; the device is sound again afterwards.
    template <class F>
    static std::string fault_of(F f) {
        const int before = soft_gpu_faults();
        testing::internal::CaptureStderr();
        f();
        const std::string said = testing::internal::GetCapturedStderr();
        EXPECT_EQ(soft_gpu_faults(), before + 1) << said;
        soft_gpu_forget_faults();
        return said;
    }
    template <class F>
    static void expect_none(F f) {
        const int before = soft_gpu_faults();
        f();
        EXPECT_EQ(soft_gpu_faults(), before);
    }

    cudaStream_t a = nullptr, b = nullptr;
    cudaEvent_t event = nullptr;
    void *memory = nullptr, *other = nullptr, *pinned = nullptr;
};

TEST_F(Streams, ReadOfWhatAnotherHasWritten) {
    write(a);
    const std::string said = fault_of([&] { read(b); });
    EXPECT_NE(said.find("read of memory that cudaMemsetAsync has written on another stream"), std::string::npos)
        << said;
    expect_none([&] { read(a); });
}

TEST_F(Streams, WriteToWhatAnotherHasWrittenOrReads) {
    write(a);
    std::string said = fault_of([&] { write(b); });
    EXPECT_NE(said.find("write to memory that cudaMemsetAsync has written"), std::string::npos) << said;
    (void)cudaDeviceSynchronize();
    read(a);
    said = fault_of([&] { write(b); });
    EXPECT_NE(said.find("write to memory that cudaMemcpyAsync has read"), std::string::npos) << said;
}

/// The first of two readers is over, the second is not, and the other way round.
TEST_F(Streams, WriteToWhatTwoRead) {
    for (const auto [first, second] : {std::array{a, b}, std::array{b, a}}) {
        cudaStream_t third = nullptr;
        (void)cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking);
        read(first);
        (void)cudaMemcpyAsync(pinned, memory, bytes, cudaMemcpyDeviceToHost, second);
        (void)cudaStreamSynchronize(a);
        fault_of([&] { write(third); });
        (void)cudaStreamSynchronize(b);
        expect_none([&] { write(third); });
        (void)cudaDeviceSynchronize();
        (void)cudaStreamDestroy(third);
    }
}

TEST_F(Streams, TwoMayRead) {
    expect_none([&] {
        read(a);
        read_to_host(b);
    });
}

TEST_F(Streams, AnEventPutsThemInOrder) {
    write(a);
    (void)cudaStreamWaitEvent(b, event, 0);  // not recorded: nothing is waited for
    fault_of([&] { read(b); });
    (void)cudaEventRecord(event, a);
    fault_of([&] { read(b); });  // recorded, not waited for
    (void)cudaStreamWaitEvent(b, event, 0);
    expect_none([&] { read(b); });
    (void)cudaStreamSynchronize(b);
    write(a);  // since then
    fault_of([&] { read(b); });
}

/// What the other one has waited for, too.
TEST_F(Streams, OrderIsHandedOn) {
    cudaStream_t c = nullptr;
    cudaEvent_t second = nullptr;
    (void)cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking);
    (void)cudaEventCreateWithFlags(&second, cudaEventDisableTiming);
    write(a);
    (void)cudaEventRecord(event, a);
    (void)cudaStreamWaitEvent(b, event, 0);
    (void)cudaEventRecord(second, b);
    (void)cudaStreamWaitEvent(c, second, 0);
    expect_none([&] { read(c); });
    (void)cudaEventDestroy(second);
    (void)cudaStreamDestroy(c);
}

TEST_F(Streams, TheHostPutsThemInOrder) {
    const std::function<void()> waits[] = {
        [&] { (void)cudaStreamSynchronize(a); },
        [&] { (void)cudaDeviceSynchronize(); },
        [&] { (void)cudaEventSynchronize(event); },
        [&] { (void)cudaEventQuery(event); },
    };
    for (const auto& wait : waits) {
        write(a);
        (void)cudaEventRecord(event, a);
        fault_of([&] { read(b); });
        wait();
        expect_none([&] { read(b); });
        (void)cudaDeviceSynchronize();
    }
    write(a);
    (void)cudaStreamSynchronize(b);  // the wrong one
    fault_of([&] { read(b); });
}

/// Streams that do not block pass the default one by.
TEST_F(Streams, OfTheDefaultOne) {
    std::vector<char> host(bytes);
    write(a);
    fault_of([&] { (void)cudaMemcpy(host.data(), memory, bytes, cudaMemcpyDeviceToHost); });
    (void)cudaStreamSynchronize(a);
    (void)cudaMemset(memory, 3, bytes);  // the host does not wait for it
    fault_of([&] { read(a); });
    (void)cudaDeviceSynchronize();
    (void)cudaMemcpy(memory, host.data(), bytes, cudaMemcpyHostToDevice);  // but for this
    expect_none([&] { read(a); });

    cudaStream_t blocking = nullptr;
    (void)cudaStreamCreate(&blocking);
    (void)cudaDeviceSynchronize();
    expect_none([&] {
        write(blocking);
        (void)cudaMemset(memory, 4, bytes);
        write(blocking);
    });
    (void)cudaStreamDestroy(blocking);
}

TEST_F(Streams, PartsOfMemoryAreTheirOwn) {
    auto* const data = static_cast<char*>(memory);
    expect_none([&] {
        (void)cudaMemsetAsync(data, 2, bytes / 2, a);
        (void)cudaMemsetAsync(data + bytes / 2, 2, bytes / 2, b);
    });
    fault_of([&] { (void)cudaMemsetAsync(data + bytes / 2 - 16, 2, 16, b); });
}

TEST_F(Streams, PinnedMemoryIsGivenBackWhenWorkOnItIsOver) {
    void* room = nullptr;
    (void)cudaMallocHost(&room, bytes);
    (void)cudaMemcpyAsync(room, memory, bytes, cudaMemcpyDeviceToHost, a);
    const std::string said = fault_of([&] { (void)cudaFreeHost(room); });
    EXPECT_NE(said.find("given back, and nothing says that cudaMemcpyAsync is over"), std::string::npos) << said;
    (void)cudaStreamSynchronize(a);
    expect_none([&] { EXPECT_EQ(cudaFreeHost(room), cudaSuccess); });
}

}  // namespace
}  // namespace soft_gpu_own
