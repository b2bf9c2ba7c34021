// Checkpoints of a model that is spread over ranks. Files hold whole tensors, so any layout reads what any other wrote:
// to save, rank 0 asks for one tensor after the other and the others give their parts of it; to load, every rank reads
// the files and takes its part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/comm.h"
#include "nn/model_config.h"
#include "nn/param.h"
#include "optim/optimizer.h"

namespace tera {

struct CheckpointRanks {
    Comm* world = nullptr;           ///< null: there is one rank
    std::vector<ParamSlice> pieces;  ///< what this rank gives: over all ranks every element once
};

/// Copies elements of a slice to their places in the full tensor, and back. Both in host memory, `elements` those of
/// the slice.
void put_into_whole(const ParamSlice& slice, ConstTensor elements, Tensor whole);
void take_from_whole(const ParamSlice& slice, ConstTensor whole, Tensor elements);

class SpreadTensors {
  public:
    /// Where a rank's tensors live, and of what kind its weights are.
    struct Source {
        Exec exec;
        DType values;
    };
    /// kind "value": Param::value; others as in Optimizer::state(), and "master" is the value where that is the main
    /// weight.
    SpreadTensors(const ModelConfig& model, const CheckpointRanks& ranks, std::vector<OptimizerTensor> optimizer,
                  const Source& source);

    struct WholeParam {
        std::string name;
        Shape shape;
    };
    /// Of the whole model, in its order.
    const std::vector<WholeParam>& params() const { return params_; }

    /// On rank 0: the tensor put together, valid until the next call.
    ConstTensor whole(const std::string& param, const std::string& kind);
    /// On rank 0: no more are wanted; ok: the checkpoint is written.
    void finish(bool ok);
    /// On the others: gives what is asked for until finish(). UsageError if that was not ok.
    void serve();

  private:
    struct Request {
        std::int64_t param = -1;  ///< index in params(); -1: done, -2: given up
        char kind[56] = {};
    };
    void tell(Request& request);
    /// The elements of a slice of this rank.
    SplitTensor elements(const ParamSlice& slice, const std::string& kind) const;
    void give(const std::string& param, const std::string& kind);

    Comm& world_;
    std::vector<ParamSlice> pieces_;
    std::vector<OptimizerTensor> optimizer_;
    Source source_;
    std::vector<WholeParam> params_;
    Arena arena_;
    ThreadPool no_threads_{1};
    Exec exec_{Device::cpu, &arena_, &no_threads_};
    std::string held_;  ///< what `whole_` is
    Tensor whole_;
};

}  // namespace tera
