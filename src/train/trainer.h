// Trainer: a training run from its flags to its end.
//
//   set-up   tokenizer, model, optimizer, checkpoint, data                       (trainer_setup.cpp)
//   loop     [save when the batch ramps] step → log → evaluate → save or stop    (trainer.cpp)
//   end      save, evaluate on validation and test data
//
// Every console line goes through `print`, so that tests can read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/progress.h"
#include "config/run_config.h"
#include "core/kernel_trace.h"
#include "token/tokenizer.h"
#include "train/agreement.h"
#include "train/batch_schedule.h"
#include "train/checkpoint.h"
#include "train/control.h"
#include "train/data_feed.h"
#include "train/interval_log.h"
#include "train/metrics.h"
#include "train/profile_window.h"
#include "train/progress.h"
#include "train/run_state.h"
#include "train/training_parts.h"

namespace tera {

struct TrainerOptions {
    /// Gets every line, without its newline. Default: standard output, flushed.
    std::function<void(const std::string&)> print{};
    /// When the process began: start of --exit-duration-in-mins and of the start-up time.
    std::chrono::steady_clock::time_point process_start = std::chrono::steady_clock::now();
    /// All ranks of the run; null: there is one. Must outlive the trainer.
    Comm* world = nullptr;
    /// Where to note what this rank is doing on its GPU; may be null.
    Progress* progress = nullptr;
    /// Called before each step with its number; may be empty.
    std::function<void(std::int64_t)> begin_step{};
};

class Trainer {
  public:
    /// `config` must be validated (validate_and_derive) for as many ranks as options.world has.
    explicit Trainer(RunConfig config, TrainerOptions options = {});
    ~Trainer();
    Trainer(const Trainer&) = delete;
    Trainer& operator=(const Trainer&) = delete;

    /// All of it. True if training came to its end, false if it was stopped before.
    bool run();

    const RunState& state() const { return state_; }
    Exec exec() { return workspace_.ctx().temp; }
    const std::vector<Param*>& params() const { return parts_->params(); }
    const Optimizer& optimizer() const { return parts_->optimizer(); }

  private:
    bool set_up_and_train();
    // Set-up, in this order.
    void set_up();
    void join_ranks();
    void print_arguments();
    void set_up_tokenizer();
    void set_up_model();
    void set_up_schedules();
    void load();
    void load_from(const CheckpointLocation& location, bool finetune);
    void check_enough_data() const;
    void agree(const std::vector<Fact>& facts);
    void print_changes(const CheckpointState& saved);
    void set_up_data();
    void set_up_records();

    // Loop.
    bool train();
    void train_one(const StepBatch& batch);
    void begin_profile();
    void end_profile();
    void skip_one(const StepBatch& batch);
    void warn_of_smallest_scale(const StepOutcome& outcome);
    void log_step(const StepBatch& batch, const StepOutcome& outcome);
    void report_timers(const std::vector<std::string>& names, double normalizer = 1);  ///< on all ranks
    void print_memory();
    bool act_on_verdict();
    void evaluate_and_print(Split split, EvalPlace place);
    void finish(bool trained);
    void save();

    /// Rank 0 speaks for all.
    void print(const std::string& line) const {
        if (leads()) options_.print(line);
    }
    bool leads() const { return options_.world == nullptr || options_.world->rank() == 0; }
    /// One rank for each part of the model does what is said once per part.
    bool first_copy() const { return mesh_->place().dp == 0 && mesh_->place().cp == 0; }
    CheckpointRanks checkpoint_ranks() const;
    ControlInput control_input();
    double params_norm();
    void print_block(const std::string& block) const {
        if (!block.empty()) print(block);
    }
    void print_time(const std::string& what) const { print(datetime_line(what, TimeStamp::now())); }
    double minutes() const { return seconds_since(options_.process_start) / 60; }
    bool evaluates(Split split) const { return config_.eval_iters > 0 && data_->has(split); }
    StepRates rates() const;

    RunConfig config_;
    TrainerOptions options_;
    LogFormat format_;
    CheckpointLines checkpoint_lines_;
    Timers timers_;
    ThreadPool pool_;
    Engine engine_;
    Workspace workspace_;
    std::optional<BatchUpload> upload_;
    MemoryPlan memory_plan_;

    std::unique_ptr<Tokenizer> tokenizer_;
    std::unique_ptr<Comm> gpu_world_;  ///< null on CPUs and with one rank
    std::unique_ptr<Mesh> mesh_;
    std::unique_ptr<TrainingParts> parts_;
    std::unique_ptr<Pipeline> pipeline_;
    std::unique_ptr<TrainStep> step_;
    std::optional<BatchSchedule> batches_;
    LrSchedule schedule_;
    std::int64_t train_iters_ = 0;
    std::unique_ptr<DataFeed> data_;

    RunState state_;
    bool loaded_ = false;               ///< weights came from files
    std::int64_t first_iteration_ = 0;  ///< where this process began
    std::int64_t saved_at_ = -1;        ///< iteration of the newest checkpoint in --save, if it is ours
    bool memory_printed_ = false;
    bool at_smallest_scale_ = false;  ///< the last step was skipped there
    IntervalLog interval_;
    std::unique_ptr<MetricsFile> metrics_;
    std::unique_ptr<ProgressLog> progress_;
    ProfileWindow profile_;
    std::optional<KernelTrace> trace_;
    Triggers triggers_;
    std::unique_ptr<SignalWatch> signal_;
};

}  // namespace tera
