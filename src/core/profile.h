// Names on the time line of a profiler: NVTX ranges for the phases of a step and for layers, and the CUDA profiler's
// start and stop. Without a tool that listens a range is one test of a pointer; in a build without CUDA it is nothing.
//
//   nsys profile --capture-range=cudaProfilerApi teratron pretrain gpt ... --profile
#pragma once

#include <cstdint>

namespace tera {

#ifdef TERA_WITH_CUDA

namespace profile {
bool listening();
void push(const char* name, std::int64_t number, const char* after);
void pop();
}  // namespace profile

/// From here to the end of the block, under a name such as "step" or "layer 7 forward".
class ProfileRange {
  public:
    explicit ProfileRange(const char* name) : ProfileRange(name, -1, "") {}
    /// "<name> <number> <after>"; a number below zero is left out.
    ProfileRange(const char* name, std::int64_t number, const char* after = "") : open_(profile::listening()) {
        if (open_) profile::push(name, number, after);
    }
    ~ProfileRange() {
        if (open_) profile::pop();
    }
    ProfileRange(const ProfileRange&) = delete;
    ProfileRange& operator=(const ProfileRange&) = delete;

  private:
    bool open_;
};

/// What --profile drives: a tool started with "capture from the CUDA profiler range" records between the two.
void profiler_start();
void profiler_stop();

#else

class ProfileRange {
  public:
    explicit ProfileRange(const char*) {}
    ProfileRange(const char*, std::int64_t, const char* = "") {}
    ~ProfileRange() {}
    ProfileRange(const ProfileRange&) = delete;
    ProfileRange& operator=(const ProfileRange&) = delete;
};

inline void profiler_start() {}
inline void profiler_stop() {}

#endif

}  // namespace tera
