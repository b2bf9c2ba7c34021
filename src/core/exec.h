// Exec: where an op runs and where its outputs live. First argument of every op.
// Ctx: the three lifetimes a layer deals in.
#pragma once

#include <algorithm>

#include "core/arena.h"
#include "core/tensor.h"
#include "core/thread_pool.h"

namespace tera {

struct Gpu;  // core/cuda/gpu.h: stream and library handles of one device
class Lane;  // core/lane.h: a second queue of it

struct Exec {
    Device device = Device::cpu;
    Arena* arena = nullptr;
    ThreadPool* pool = nullptr;
    Gpu* gpu = nullptr;
    const Lane* lane = nullptr;  ///< for communicators: another queue than the device's own

    /// A dry run that only measures memory: nothing may be computed.
    bool counts() const { return arena->kind() == Arena::Kind::counting; }
    Tensor tensor(DType dtype, Shape shape) const { return arena->tensor(dtype, shape); }
    /// Zeroed at once, by the host: for set-up. Within a step use ops::fill_zero, which goes along the stream.
    Tensor zeros(DType dtype, Shape shape) const { return arena->zeros(dtype, shape); }
    Tensor like(const ConstTensor& t) const { return arena->tensor(t.dtype, t.shape); }
};

struct Ctx {
    Exec keep;  ///< lives until this micro-batch's backward is done
    Exec temp;  ///< lives until the block returns
    Exec redo;  ///< activations rebuilt in backward, or not needed by any backward: lives for one layer
};

/// Calls f(begin, end) over [0, n) in pieces of `grain`; the cut depends on n and grain only.
template <class F>
void parallel_for(const Exec& exec, std::int64_t n, std::int64_t grain, const F& f) {
    grain = std::max<std::int64_t>(grain, 1);
    std::int64_t pieces = (n + grain - 1) / grain;
    exec.pool->run(pieces, [&](std::int64_t i) { f(i * grain, std::min(n, (i + 1) * grain)); });
}

/// Rows per piece so that one piece touches about `target` elements.
inline std::int64_t grain_rows(std::int64_t cols, std::int64_t target = 32768) {
    return std::max<std::int64_t>(1, target / std::max<std::int64_t>(cols, 1));
}

}  // namespace tera
