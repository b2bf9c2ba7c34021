// TrainingParts: the weights a run trains and what updates them - model, optimizer, loss scaler - built from the flags
// on one device, allocated and initialised. What trains them is a TrainStep.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "config/run_config.h"
#include "core/engine.h"
#include "model/decoder.h"
#include "optim/loss_scaler.h"
#include "optim/optimizer.h"
#include "train/memory_plan.h"
#include "train/train_step.h"

namespace tera {

MeshShape mesh_shape_from(const RunConfig& config);
CpComm cp_comm_from(const RunConfig& config);
/// Of steps with the whole global batch.
PipelineShape pipeline_shape_from(const RunConfig& config);
ReceiveAhead receive_ahead_from(const RunConfig& config);
/// Pipeline::Parts::deferral.
std::optional<std::int64_t> deferral_from(const RunConfig& config);
/// How many micro-batches are in use at the same time on a stage, at most (BatchUpload).
int held_micro_batches(const PipelineShape& shape, int stage);
/// The slices of the model on one stage, a chunk each.
std::vector<ModelSlice> slices_of_stage(const RunConfig& config, int stage);

class TrainingParts {
  public:
    /// `config` is validated and knows its padded vocabulary; true_vocab: the tokenizer's size. Scratch memory comes
    /// from `workspace`; if that one only counts, so does everything here. `plan` tells how much to take in one piece.
    /// mesh: the rank's place among the others; it must outlive this.
    TrainingParts(const RunConfig& config, std::int64_t true_vocab, Workspace& workspace, const MemoryPlan& plan,
                  const Mesh& mesh);
    /// One rank.
    TrainingParts(const RunConfig& config, std::int64_t true_vocab, Workspace& workspace, const MemoryPlan& plan = {});
    TrainingParts(const TrainingParts&) = delete;
    TrainingParts& operator=(const TrainingParts&) = delete;

    const ModelConfig& model_config() const { return models_[0]->config(); }
    /// This rank's slices of the model, in order.
    std::vector<Decoder*> chunks() const;
    /// Bytes of the models' tables (Decoder::table_bytes).
    std::size_t table_bytes() const;
    const std::vector<Param*>& params() const { return params_; }
    Optimizer& optimizer() { return *optimizer_; }
    const Optimizer& optimizer() const { return *optimizer_; }
    std::optional<LossScaler>& scaler() { return scaler_; }
    GradSync& sync() { return *sync_; }
    const Mesh& mesh() const { return mesh_; }
    const TrainStep::Settings& step_settings() const { return step_settings_; }

    /// Of this rank.
    std::int64_t parameter_count() const;
    /// Bytes of weights and gradients, and of the optimizer.
    std::size_t weights_bytes() const { return weights_arena_.used(); }
    std::size_t optimizer_bytes() const { return optimizer_arena_.used(); }
    /// Bytes taken from the device for all of it.
    std::size_t held_bytes() const { return weights_arena_.held() + optimizer_arena_.held(); }

  private:
    const Mesh& mesh_;
    Arena weights_arena_, optimizer_arena_;
    std::vector<std::unique_ptr<Decoder>> models_;
    std::vector<Param*> params_;
    std::unique_ptr<GradSync> sync_;
    std::unique_ptr<Optimizer> optimizer_;
    std::optional<LossScaler> scaler_;
    TrainStep::Settings step_settings_;
};

}  // namespace tera
