// CpRegion: ranks that share out the sequence. It is cut into 2C chunks for C ranks, and rank r holds chunks r and
// 2C-1-r, in that order, so that all have as many pairs of queries and keys under the causal mask. Only attention needs
// other ranks' tokens: it gathers their keys and values.
//
//   gather    V→R  all-gather, chunks put in the order of the sequence
//   scatter   P→V  its transpose: reduce-scatter
//
// With one rank both return what they were given.
#pragma once

#include "comm/comm.h"
#include "ops/residual.h"

namespace tera {

/// One run of the sequence on a rank.
struct SequenceRun {
    std::int64_t first_row = 0;  ///< among the rank's positions
    std::int64_t length = 0;
    std::int64_t begin = 0;  ///< in the sequence
    std::int64_t end() const { return begin + length; }
};

/// Where rank r of `size` stands: S positions of it in a sequence of S·size.
ops::SequencePiece zigzag_piece(std::int64_t S, int rank, int size);

class CpRegion {
  public:
    /// One rank.
    CpRegion() = default;
    /// `comm` must outlive it.
    explicit CpRegion(Comm& comm) : comm_(&comm), rank_(comm.rank()), size_(comm.size()) {}

    int rank() const { return rank_; }
    int size() const { return size_; }

    /// The runs that this rank's S positions are, one after the other.
    std::vector<SequenceRun> runs(std::int64_t S) const;

    /// Rows s*B + b of the whole sequence from every rank's.
    ConstTensor gather(const Exec& exec, ConstTensor local) const;
    /// This rank's rows of the sum of the ranks' `whole`.
    ConstTensor scatter(const Exec& exec, ConstTensor whole) const;

  private:
    Comm* comm_ = nullptr;
    int rank_ = 0, size_ = 1;
};

}  // namespace tera
