// The same small training on one rank and on a layout of ranks, in f64: what `teratron verify` and the tests compare.
// Every gradient of the first step and every weight after the last are gathered into whole tensors.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "parallel/layer_plan.h"
#include "train/train_step.h"

namespace tera {

struct ParityLayout {
    MeshShape mesh;
    CpComm cp_comm = CpComm::ring;
    bool sequence_parallel = false;
    bool distributed_optimizer = false;
    bool overlap = false;  ///< gradients are reduced, and values gathered, in small buffers while others are computed
    bool overlap_gather = true;     ///< else values are gathered after the step
    bool gather_in_update = false;  ///< begins for each buffer while the next is updated
    bool tp_overlap = true;         ///< what tensor-parallel layers send in backward, beside computing
    int chunks = 1;                 ///< of each pipeline stage
    std::optional<std::int64_t> first_stage_layers = {}, last_stage_layers = {};  ///< absent: as many as the others
    bool count_embedding = false, count_loss = false;  ///< as layers of the first and last stage
    RecomputeConfig recompute = {};
    std::int64_t group = 0;                     ///< PipelineShape::group
    std::optional<std::int64_t> deferral = {};  ///< Pipeline::Parts::deferral
    ReceiveAhead ahead = {true, true};

    std::string name() const;
};

struct ParityTraining {
    ModelConfig model;
    std::int64_t S = 8, B = 2;
    int micro_batches = 4;  ///< of a step, over all ranks
    int steps = 3;
    bool documents = false, per_token_loss = false;
    double clip = 1;
};

/// Whole tensors by name, put together from the ranks' pieces.
class WholeTensors {
  public:
    /// `elements`: of the slice, f64, wherever exec's memory is.
    void put(const Exec& exec, const ParamSlice& slice, const Tensor& elements);
    /// A part of a tensor: all but the elements that are NaN.
    void put(const std::string& name, const std::vector<double>& part);
    const std::map<std::string, std::vector<double>>& all() const { return tensors_; }
    /// Tensors of which two ranks held different bits, and by how much.
    const std::map<std::string, double>& differing() const { return differing_; }

  private:
    void put(const std::string& name, double& to, double x);

    std::mutex mutex_;
    std::map<std::string, std::vector<double>> tensors_;
    std::map<std::string, double> differing_;
};

struct ParityRecord {
    WholeTensors grads, weights;
    std::vector<StepOutcome> steps;
    LossSum evaluation;
    bool agreed = true;  ///< all ranks have seen the same losses, norms and zeros

    void add(int step, const StepOutcome& outcome);
    /// Every rank has a record of its own: rank 0's becomes that of all.
    void gather(Comm& world);

  private:
    std::mutex mutex_;
};

/// One rank of `world`, whose memory is the engine's.
void train_rank(const ParityTraining& training, const ParityLayout& layout, Comm& world, const Engine& engine,
                ParityRecord& record);
void train_on_threads(const ParityTraining& training, const ParityLayout& layout, ParityRecord& record);

/// Largest |a-b| relative to the largest |b|.
double largest_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace tera
