// measure_tensors on the GPU as something that can be enqueued; no CUDA header is needed to include this.
//
// One block of threads per piece leaves its sums in memory, then one block adds them in order: no atomics, the same
// bits every time.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/param.h"
#include "optim/measure.h"

namespace tera {

/// Elements [begin, begin + count) of one tensor of a list.
struct DevicePiece {
    std::int64_t begin;
    std::int32_t count, tensor;
};

/// A list of tensors cut into pieces, group by group, in device memory: a block of threads for each.
class DevicePieces {
  public:
    DevicePieces(const std::vector<SplitTensor>& tensors, Arena& arena, const Exec& exec,
                 const SliceGroups& groups = {});

    const DevicePiece* data(int group = 0) const {
        return reinterpret_cast<const DevicePiece*>(pieces_.data) + begins_[static_cast<std::size_t>(group)];
    }
    std::int64_t count(int group = 0) const {
        return begins_[static_cast<std::size_t>(group) + 1] - begins_[static_cast<std::size_t>(group)];
    }

  private:
    std::vector<std::int64_t> begins_;  ///< as PieceGroups::begins
    Tensor pieces_;
};

class CudaMeasure {
  public:
    /// Tables and sums live in `arena`. The tensors must not move.
    CudaMeasure(const std::vector<SplitTensor>& tensors, Arena& arena, const Exec& exec);

    void enqueue(const Exec& exec) const;
    /// A RanksMeasured, there when what enqueue() ordered is done; its sums are this rank's.
    Tensor result() const { return result_; }

  private:
    DevicePieces pieces_;
    Tensor tensors_, sums_, result_;
};

}  // namespace tera
