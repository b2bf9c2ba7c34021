// How far the device has come: a stream writes the number of a call into memory of the host when it begins and ends it.
#if defined(TERA_WITH_CUDA) && __has_include(<nccl.h>)

#include "comm/nccl_rank.h"

#include <cuda.h>

#include <atomic>

#include "core/cuda/check.h"

namespace tera {
namespace {

/// Writes a number into memory of the host when a stream comes to it.
using WriteValue = decltype(&cuStreamWriteValue64);

/// Null if the driver has none: then ranks that wait for each other are found by --distributed-timeout-minutes alone.
WriteValue find_write_value() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    if (cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &function, 12000, cudaEnableDefault, &found) !=
        cudaSuccess)
        return nullptr;
    return reinterpret_cast<WriteValue>(function);
}

}  // namespace

CallCounter::CallCounter(std::uint64_t key, int members, std::int64_t ahead) : log_(key, members, ahead) {
    TERA_CUDA(cudaMallocHost(reinterpret_cast<void**>(&counts_), sizeof *counts_));
    counts_->begun = counts_->ended = 0;
}

CallCounter::~CallCounter() { cudaFreeHost(counts_); }

void CallCounter::begin(cudaStream_t stream, std::string call) {
    {
        const std::lock_guard lock(mutex_);
        number_ = log_.add(std::move(call));
    }
    write(stream, counts_->begun);
}

DeviceCalls CallCounter::seen() {
    const std::lock_guard lock(mutex_);
    // In this order: a call that ends in between counts as open.
    const auto ended = std::atomic_ref(counts_->ended).load(), begun = std::atomic_ref(counts_->begun).load();
    return log_.seen(static_cast<std::int64_t>(begun), static_cast<std::int64_t>(ended));
}

void CallCounter::write(cudaStream_t stream, std::uint64_t& to) const {
    static const WriteValue write_value = find_write_value();
    if (write_value == nullptr) return;
    const CUresult status =
        write_value(stream, reinterpret_cast<CUdeviceptr>(&to), static_cast<cuuint64_t>(number_), 0);
    TERA_CHECK(status == CUDA_SUCCESS, "cuStreamWriteValue64: CUDA error ", static_cast<int>(status));
}

Rank::Rank(Gpu& g, Progress* p) : gpu(g), progress(p) {
    if (progress != nullptr) progress->watch_device([this] { return calls(); });
}

Rank::~Rank() {
    if (progress != nullptr) progress->watch_device({});
}

std::shared_ptr<CallCounter> Rank::count(const std::vector<int>& members, const char* purpose, std::int64_t ahead) {
    const int number = made_[{members, purpose}]++;
    auto counter = std::make_shared<CallCounter>(communicator_key(members, purpose, number),
                                                 static_cast<int>(members.size()), ahead);
    const std::lock_guard lock(mutex_);
    counters_.push_back(counter);
    return counter;
}

void Rank::begin(CallCounter& counter, cudaStream_t stream, const std::string& call) {
    counter.begin(stream, call);
    if (progress != nullptr) progress->enqueue_call(call);
}

std::vector<DeviceCalls> Rank::calls() {
    const std::lock_guard lock(mutex_);
    std::vector<DeviceCalls> all_calls;
    for (const std::weak_ptr<CallCounter>& counter : counters_) {
        if (const auto there = counter.lock()) all_calls.push_back(there->seen());
    }
    return all_calls;
}

}  // namespace tera

#endif
