// How long the stages of preprocessing had a processor.
#pragma once

#include <ctime>

namespace tera {

/// Seconds of processor time, of all threads together.
struct StageSeconds {
    double reading = 0;     // and unpacking
    double parsing = 0;     // of JSON, and the check for valid UTF-8
    double tokenising = 0;  // and splitting into sentences
    double writing = 0;
    double all() const { return reading + parsing + tokenising + writing; }
    StageSeconds& operator+=(const StageSeconds& other) {
        reading += other.reading;
        parsing += other.parsing;
        tokenising += other.tokenising;
        writing += other.writing;
        return *this;
    }
};

/// Time that the calling thread has had a processor.
inline double thread_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace tera
