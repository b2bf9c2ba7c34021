// measure_tensors on the GPU as something that can be enqueued; no CUDA header is needed to include this.
//
// One block of threads per piece leaves its sums in memory, then one block adds them in order: no atomics, the same
// bits every time. The table of pieces serves the optimizer's update too.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec.h"
#include "optim/measure.h"

namespace tera {

/// Elements [begin, begin + count) of one tensor of a list.
struct DevicePiece {
    std::int64_t begin;
    std::int32_t count, tensor;
};

class CudaMeasure {
  public:
    /// Tables and sums live in `arena`. The tensors must not move.
    CudaMeasure(const std::vector<Tensor>& tensors, Arena& arena, const Exec& exec);

    void enqueue(const Exec& exec) const;
    /// A Measured in device memory, there when what enqueue() ordered is done.
    ConstTensor result() const { return result_; }

    const DevicePiece* pieces() const { return reinterpret_cast<const DevicePiece*>(pieces_.data); }
    std::int64_t piece_count() const { return count_; }

  private:
    std::int64_t count_;
    Tensor pieces_, tensors_, sums_, result_;
};

}  // namespace tera
