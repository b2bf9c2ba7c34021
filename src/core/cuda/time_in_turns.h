// Which of several ways to do one thing on a GPU is the fastest.
#pragma once

#include <vector>

#include "core/cuda/check.h"

namespace tera {

/// Moments on a stream, for the time between them.
class Marks {
  public:
    explicit Marks(std::size_t count) : marks_(count) {
        for (cudaEvent_t& mark : marks_) TERA_CUDA(cudaEventCreate(&mark));
    }
    ~Marks() {
        for (cudaEvent_t mark : marks_) cudaEventDestroy(mark);
    }
    Marks(const Marks&) = delete;
    Marks& operator=(const Marks&) = delete;
    void set(std::size_t i, cudaStream_t stream) { TERA_CUDA(cudaEventRecord(marks_[i], stream)); }
    float ms(std::size_t from, std::size_t to) const {
        float elapsed = 0;
        TERA_CUDA(cudaEventSynchronize(marks_[to]));
        TERA_CUDA(cudaEventElapsedTime(&elapsed, marks_[from], marks_[to]));
        return elapsed;
    }

  private:
    std::vector<cudaEvent_t> marks_;
};

/// Milliseconds of each of run(0) .. run(count - 1), which put work on the stream; < 0 where run says false: it cannot.
/// They run in turns, some rounds after one for warming up, so that a clock that falls as the GPU gets hot slows all
/// of them alike.
template <class F>
std::vector<float> time_in_turns(std::size_t count, std::size_t rounds, cudaStream_t stream, const F& run) {
    std::vector<float> ms(count, 0);
    for (std::size_t i = 0; i < count; ++i)
        if (!run(i)) ms[i] = -1;
    Marks marks(rounds * (count + 1));
    for (std::size_t round = 0; round < rounds; ++round) {
        marks.set(round * (count + 1), stream);
        for (std::size_t i = 0; i < count; ++i) {
            if (ms[i] >= 0 && !run(i)) ms[i] = -1;
            marks.set(round * (count + 1) + i + 1, stream);
        }
    }
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t at = i; ms[i] >= 0 && at < rounds * (count + 1); at += count + 1)
            ms[i] += marks.ms(at, at + 1) / static_cast<float>(rounds);
    return ms;
}

}  // namespace tera
