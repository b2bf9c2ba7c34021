// Checkpoints: a folder that is a Hugging Face model and holds all that an exact resume needs
// (docs/checkpoint-format.md).
//
//   <save>/latest_checkpointed_iteration.txt
//   <save>/iter_0000100/
//     config.json  generation_config.json  tokenizer files
//     model.safetensors, or model-0000i-of-0000N.safetensors and model.safetensors.index.json
//     training_state/state.json
//     training_state/{master,exp_avg,exp_avg_sq}[-0000i-of-0000N].safetensors
//
// Saving writes a temporary folder, syncs it, renames it, and only then names it in the tracker file: a crash at any
// instant leaves the previous checkpoint whole. Tensors are streamed; neither saving nor loading holds a second copy of
// the model.
//
// The usual life:
//     auto where = find_checkpoint(config.load, config.ckpt_step);              // nothing there: std::nullopt
//     auto state = read_checkpoint_state(*where);                              // flags of the saved run, iteration,
//     ... auto result = load_checkpoint(*where, {model_config, params, optimizer_tensors}, options);
//     ...
//     save_checkpoint({model_config, params, optimizer_tensors, tokenizer->files(), tokenizer->eod(), state}, options);
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/hf_config.h"
#include "nn/model_config.h"
#include "nn/param.h"
#include "optim/optimizer.h"
#include "token/tokenizer.h"
#include "train/checkpoint_ranks.h"
#include "train/log_lines.h"

namespace tera {

/// The numbers of training_state/state.json. The three JSON objects belong to the scheduler, the loss scaler and the
/// optimizer (step counts): they are given back as they were saved, every double to the last bit. All numbers in them
/// must be finite.
struct CheckpointState {
    std::int64_t iteration = 0;
    std::int64_t consumed_train_samples = 0;
    std::int64_t consumed_valid_samples = 0;
    std::int64_t skipped_train_samples = 0;
    double floating_point_operations = 0;  ///< so far
    std::uint64_t seed = 0;  ///< of dropout, the only random numbers drawn while training; ignored by --no-load-rng
    nlohmann::json scheduler = nlohmann::json::object();
    nlohmann::json loss_scaler = nlohmann::json::object();
    nlohmann::json optimizer = nlohmann::json::object();
    nlohmann::json arguments = nlohmann::json::object();  ///< config_to_json() of the run
};

// ---- saving
// -----------------------------------------------------------------------------------------------------------

struct CheckpointContent {
    const ModelConfig& model;
    std::vector<Param*> params;
    /// Optimizer::state(): one file (or set of shards) per kind. Where "master" is left out because Param::value is the
    /// main weight, the value is saved as master, the padding rows of the vocabulary included.
    std::vector<OptimizerTensor> optimizer;
    std::vector<TokenizerFile> tokenizer;  ///< copied beside the model; may be empty
    std::optional<std::int32_t> eod;       ///< bos and eos of config.json
    const CheckpointState& state;
    Exec exec = {};              ///< where the tensors live; may be left out on the CPU
    CheckpointRanks ranks = {};  ///< of several ranks all call save_checkpoint(); rank 0 writes
};

struct SaveOptions {
    std::string folder;           ///< --save
    bool optimizer = true;        ///< false: --no-save-optim; no tensors in training_state
    std::int64_t keep_last = 0;   ///< after saving, only the newest N stay; 0: all
    std::int64_t keep_every = 0;  ///< those whose iteration is a multiple of this stay in any case; 0: none
    std::uint64_t shard_bytes = std::uint64_t{5} << 30;          ///< a file is not begun beyond this size
    std::function<void(const std::string& step)> before_step{};  ///< called before every step; tests interrupt there
};

struct SaveReport {
    std::string path;                  ///< <save>/iter_NNNNNNN
    std::uint64_t bytes = 0;           ///< written
    std::vector<std::string> notices;  ///< one line each: own names used, checkpoints deleted
};

/// UsageError if the folder cannot be written or the disk is full; then nothing that was there before has changed and
/// nothing half-written is left.
SaveReport save_checkpoint(const CheckpointContent& content, const SaveOptions& options);

/// UsageError unless checkpoints can be written to `folder`, which is created. To be called before training, not hours
/// later.
void check_save_folder(const std::string& folder);

// ---- loading
// ----------------------------------------------------------------------------------------------------------

struct CheckpointLocation {
    std::string folder;          ///< as given with --load
    std::string path;            ///< of the model files
    std::int64_t iteration = 0;  ///< 0 for a release or a folder of model files
    bool release = false;
    bool has_state = false;  ///< training_state/state.json is there
};

/// What --load DIR means: the checkpoint named by the tracker file, or iteration `step`; DIR itself if it is an iter
/// folder or holds only model files (config.json and safetensors). std::nullopt if it holds no tracker file and no
/// model: see CheckpointLines::missing(). UsageError if the tracker is unreadable or names what is not there.
std::optional<CheckpointLocation> find_checkpoint(const std::string& folder, std::optional<std::int64_t> step = {});

/// What tells one checkpoint from another, wherever they lie: the checksum of its state, which holds those of its
/// files, or without one that of the beginnings of all tensors.
std::string checkpoint_fingerprint(const CheckpointLocation& location);

/// The numbers of a checkpoint without its tensors. UsageError if it has none (model files only).
CheckpointState read_checkpoint_state(const CheckpointLocation& location);

/// The model of a checkpoint as its config.json describes it, vocabulary unpadded.
HfModel read_checkpoint_model(const CheckpointLocation& location);

struct LoadTarget {
    const ModelConfig& model;
    std::vector<Param*> params;
    std::vector<OptimizerTensor> optimizer;  ///< where to put the optimizer's tensors
    Exec exec = {};                          ///< where the tensors live; may be left out on the CPU
};

struct LoadOptions {
    bool finetune = false;  ///< weights only; everything else starts fresh
    bool optimizer = true;  ///< false: --no-load-optim
};

struct LoadResult {
    bool optimizer_loaded = false;  ///< else main weights must be copied from the values, and moments are as they were
    CheckpointState state;          ///< fresh (zeros, empty objects) for finetune, release and model files
    std::vector<std::string> notices;  ///< one line each: what differs between the files and this model
};

/// Reads the weights into Param::value (converted if the dtype differs) and the optimizer's tensors into theirs; checks
/// names, shapes and checksums. UsageError names the file and the tensor.
LoadResult load_checkpoint(const CheckpointLocation& location, const LoadTarget& target, const LoadOptions& options);

// ---- Megatron's lines
// -------------------------------------------------------------------------------------------------

/// No trailing newlines. core-head puts the time in front.
struct CheckpointLines {
    LogFormat format = LogFormat::core_0_12;
    int tp_size = 1, pp_size = 1;

    std::string saving(std::int64_t iteration, const std::string& folder,
                       const TimeStamp& now = TimeStamp::now()) const;
    std::string saved(std::int64_t iteration, const std::string& folder, const TimeStamp& now = TimeStamp::now()) const;
    std::string loading(const CheckpointLocation& location) const;
    std::string version() const;  ///< " checkpoint version 3.0"
    std::string loaded(const CheckpointLocation& location, std::int64_t iteration,
                       const TimeStamp& now = TimeStamp::now()) const;
    /// The two lines for a --load folder in which find_checkpoint() found nothing.
    std::vector<std::string> missing(const std::string& folder) const;
};

}  // namespace tera
