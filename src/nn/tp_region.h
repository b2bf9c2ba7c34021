// TpRegion: the border between the residual stream and a tensor-parallel region. Each crossing has its transpose.
//
//                    sequence-parallel          plain
//   enter            V→R  all-gather            I→R  nothing
//   enter_backward   P→V  reduce-scatter        P→I  all-reduce
//   leave            P→V  reduce-scatter        P→I  all-reduce
//   leave_backward   V→R  all-gather            I→R  nothing
//
// R replicated, used differently · I identical, used alike · V varying (each rank its rows) · P a sum still owed.
// Rows are tokens t = s*B + b, so a rank's rows of the stream are one run of the sequence. With one rank every crossing
// returns what it was given.
#pragma once

#include <memory>

#include "comm/comm.h"
#include "core/lane.h"
#include "nn/param.h"

namespace tera {

struct TpLane {
    explicit TpLane(const Engine& engine) : lane(engine), crossed(lane) {}
    Lane lane;
    Lane::Mark crossed;
};

class TpRegion {
  public:
    /// One rank.
    TpRegion() = default;
    /// `comm` must outlive it. Sequence-parallel has no meaning with one rank. lane: for crossings that go on beside
    /// other work; null: none does.
    TpRegion(Comm& comm, bool sequence_parallel, std::shared_ptr<TpLane> lane = nullptr);

    int rank() const { return place_.rank; }
    int size() const { return place_.size; }
    TpPlace place() const { return place_; }
    bool sequence_parallel() const { return sequence_parallel_; }

    /// Rows of the stream that this rank holds, of T.
    std::int64_t rows(std::int64_t T) const { return sequence_parallel_ ? T / size() : T; }
    std::int64_t first_row(std::int64_t T) const { return sequence_parallel_ ? T / size() * rank() : 0; }
    /// sum_grad_over of a parameter that is whole on every rank and acts on the stream.
    AxisSet stream_axes() const { return AxisSet{Axis::dp, Axis::cp}.with(Axis::tp, sequence_parallel_); }

    /// What is new is allocated in exec; plain reductions are done in place.
    ConstTensor enter(const Exec& exec, ConstTensor x) const { return gather(exec, x); }
    Tensor enter_backward(const Exec& exec, Tensor dx) const { return sum(exec, dx); }
    Tensor leave(const Exec& exec, Tensor y) const { return sum(exec, y); }
    ConstTensor leave_backward(const Exec& exec, ConstTensor dy) const { return gather(exec, dy); }

    /// A crossing that goes on beside what exec is given from here on; its result may be used after wait().
    template <class Crossing>
    auto beside(const Exec& exec, const Crossing& crossing) const {
        if (!lane_) return crossing(exec);
        lane_->lane.follow(exec);
        auto result = crossing(lane_->lane.on(exec));
        lane_->crossed.set();
        return result;
    }
    void wait(const Exec& exec) const {
        if (lane_) lane_->crossed.wait(exec);
    }

    /// Of a tensor that is the same on every rank: this rank's part of its elements, and the whole from all parts.
    Tensor own_part(Tensor x) const;
    Tensor from_parts(const Exec& exec, ConstTensor part, Shape shape) const;

    /// Over the ranks of the region, in place.
    void all_reduce(const Exec& exec, Tensor data, Reduce op) const;

  private:
    ConstTensor gather(const Exec& exec, ConstTensor x) const;
    Tensor sum(const Exec& exec, Tensor x) const;

    Comm* comm_ = nullptr;
    TpPlace place_;
    bool sequence_parallel_ = false;
    std::shared_ptr<TpLane> lane_;
};

}  // namespace tera
