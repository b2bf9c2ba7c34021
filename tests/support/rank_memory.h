// What a rank that only communicates needs: an arena and a pool of one thread.
#pragma once

#include "core/exec.h"

namespace tera::test {

struct RankMemory {
    Arena arena;
    ThreadPool pool{1};
    Exec exec{Device::cpu, &arena, &pool};

    Tensor zeros(DType dtype, std::int64_t n) const { return exec.zeros(dtype, {n}); }
};

}  // namespace tera::test
