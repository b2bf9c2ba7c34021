// CpRegion: ranks that share out the sequence. It is cut into 2C chunks for C ranks, and rank r holds chunks r and
// 2C-1-r, in that order, so that all have as many pairs of queries and keys under the causal mask. Only attention needs
// other ranks' tokens. Their keys and values travel around the ring of ranks, a block at a time
// (nn/ring_attention.h), or are gathered:
//
//   gather    V→R  all-gather, chunks put in the order of the sequence
//   scatter   P→V  its transpose: reduce-scatter
//
// With one rank both return what they were given.
#pragma once

#include <memory>

#include "comm/comm.h"
#include "core/lane.h"
#include "ops/sequence_piece.h"

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

/// How keys and values get to the other ranks.
enum class CpComm : std::uint8_t { ring, all_gather };

class CpRegion {
  public:
    /// One rank.
    CpRegion() = default;
    /// `comm` must outlive it. engine: of the rank.
    CpRegion(Comm& comm, CpComm kind, const Engine& engine);

    int rank() const { return rank_; }
    int size() const { return size_; }
    CpComm kind() const { return kind_; }

    /// The runs that this rank's S positions are, one after the other.
    std::vector<SequenceRun> runs(std::int64_t S) const;

    /// Rows s*B + b of the whole sequence from every rank's.
    ConstTensor gather(const Exec& exec, ConstTensor local) const;
    /// This rank's rows of the sum of the ranks' `whole`.
    ConstTensor scatter(const Exec& exec, ConstTensor whole) const;

    /// What travels around the ring.
    enum class Cargo : std::uint8_t { block, gradients };
    /// Sends `in` to the next rank and takes `out` from the one before, beside what is computed on exec from now on:
    /// until arrived() neither is touched there.
    void pass_on(const Exec& exec, Cargo cargo, ConstTensor in, Tensor out) const;
    /// What is enqueued on exec from now on finds the cargo in place.
    void arrived(const Exec& exec, Cargo cargo) const;

  private:
    /// The ring's own queue on the device, one for all layers.
    struct Road {
        explicit Road(const Engine& engine) : lane(engine), block(lane), gradients(lane) {}
        Lane::Mark& mark(Cargo cargo) { return cargo == Cargo::block ? block : gradients; }
        Lane lane;
        Lane::Mark block, gradients;  ///< behind the last that was sent
    };

    Comm* comm_ = nullptr;
    int rank_ = 0, size_ = 1;
    CpComm kind_ = CpComm::ring;
    std::shared_ptr<Road> road_;
};

}  // namespace tera
