// Setting up a run: every part is built here, in the order in which its lines are printed.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "comm/nccl_comm.h"
#include "config/config_dump.h"
#include "core/build_info.h"
#include "core/error.h"
#include "io/durable_file.h"
#include "train/format_text.h"
#include "train/plan.h"
#include "train/run_schedules.h"
#include "train/trainer.h"

namespace tera {
namespace {

void print_to_stdout(const std::string& line) {
    std::fputs((line + "\n").c_str(), stdout);
    std::fflush(stdout);
}

std::string without_last_newline(std::string text) {
    if (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
}

CheckpointLines lines_from(const RunConfig& c) {
    return {.format = parse_log_format(c.log_format),
            .tp_size = static_cast<int>(c.tensor_model_parallel_size),
            .pp_size = static_cast<int>(c.pipeline_model_parallel_size)};
}

ProfileWindow profile_window(const RunConfig& c, Device device) {
    const auto& ranks = c.profile_ranks;
    const bool this_rank = std::find(ranks.begin(), ranks.end(), c.rank) != ranks.end();
    if (!c.profile || !this_rank || device == Device::cpu) return {};
    return {c.profile_step_start, c.profile_step_end};
}

/// Was the changed argument named on the command line?
bool was_given(const RunConfig& c, const ConfigChange& change) {
    std::string dest = change.name.substr(change.name.find_first_not_of('-'));
    std::replace(dest.begin(), dest.end(), '-', '_');
    return c.given.count(dest) != 0;
}

/// Why micro-batches cannot be recorded; empty if they can.
std::string why_nothing_is_recorded(const RunConfig& c, Device device, const Mesh& mesh) {
    if (device == Device::cpu) return "there are no CUDA graphs on the CPU";
    if (mesh.shape().size() > 1) return "with several ranks what they send is given piece by piece";
    if (c.reset_attention_mask) return "with --reset-attention-mask every micro-batch has documents of its own";
    if (c.profile) return "with --profile every kernel is seen under the layer that it is of";
    if (c.timing_log_level >= 2) return "--timing-log-level 2 waits for the GPU in the middle of a micro-batch";
    if (c.defer_embedding_wgrad_compute) return "--defer-embedding-wgrad-compute leaves work to the end of a step";
    if (c.overlap_grad_reduce) return "--overlap-grad-reduce looks at each gradient when it is done";
    return "";
}

}  // namespace

Trainer::Trainer(RunConfig config, TrainerOptions options)
    : config_(std::move(config)),
      options_(std::move(options)),
      format_(parse_log_format(config_.log_format)),
      checkpoint_lines_(lines_from(config_)),
      timers_(static_cast<int>(config_.timing_log_level)),
      pool_(static_cast<int>(config_.threads)),
      engine_(device_named(config_.device), Engine::gpu_of_rank(static_cast<int>(config_.local_rank))),
      workspace_(engine_, pool_),
      profile_(profile_window(config_, engine_.device())),
      triggers_(config_.trigger_path) {
    if (!options_.print) options_.print = print_to_stdout;
    engine_.set_deterministic(config_.deterministic_mode);
    if (engine_.device() != Device::cpu) timers_.wait_with([this] { engine_.synchronize(); });
}

Trainer::~Trainer() = default;

void Trainer::set_up() {
    require_runnable(config_);
    join_ranks();
    agree(flags_to_share(config_));
    if (config_.exit_signal_handler)  // one that comes before the first iteration is acted on after it
        signal_ = std::make_unique<SignalWatch>(format_ == LogFormat::swiss ? SIGUSR2 : SIGTERM);
    print_arguments();
    if (!config_.save.empty() && leads()) check_save_folder(config_.save);
    if (!config_.profile_timeline.empty()) make_folders(config_.profile_timeline);  // now, not in the middle of the run
    set_up_tokenizer();
    print(cat("> initialized tensor model parallel with size ", config_.tensor_model_parallel_size));
    print(cat("> initialized pipeline model parallel with size ", config_.pipeline_model_parallel_size));
    print(cat("> setting random seeds to ", config_.seed, " ..."));
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.3f", seconds_since(options_.process_start));
    print(cat("time to initialize megatron (seconds): ", seconds));
    print_time("after megatron is initialized");
    {
        Timers::Scope timer(timers_, "model-and-optimizer-setup");
        set_up_model();
        set_up_schedules();
        load();
    }
    print_time("after model, optimizer, and learning rate scheduler are built");
    {
        Timers::Scope timer(timers_, "train/valid/test-data-iterators-setup");
        set_up_data();
        if (mesh_->world().size() > 1) agree(facts_of(data_->datasets()));
    }
    print_time("after dataloaders are built");
    print("done with setup ...");
    report_timers({"model-and-optimizer-setup", "train/valid/test-data-iterators-setup"});
    set_up_records();
}

void Trainer::agree(const std::vector<Fact>& facts) { require_agreement(mesh_->world(), workspace_.ctx().temp, facts); }

void Trainer::join_ranks() {
    const int ranks = options_.world == nullptr ? 1 : options_.world->size();
    if (config_.world_size != ranks) {
        usage_error(
            "world size ", config_.world_size, ", but ",
            ranks == 1 ? "this is the only rank" : cat(ranks, " ranks have come"),
            "; start as many with `teratron launch local --nproc-per-node N -- pretrain …`, torchrun, srun or mpirun");
    }
    if (ranks == 1) {
        mesh_ = std::make_unique<Mesh>();
        return;
    }
    if (config_.overlap_grad_reduce && engine_.device() == Device::cpu) {
        config_.notices.push_back(
            "--overlap-grad-reduce, --overlap-param-gather[-with-optimizer-step]: on CPUs a buffer is reduced when it "
            "is full, and nothing is computed meanwhile; the numbers are the same");
    }
    if (engine_.device() != Device::cpu) gpu_world_ = make_nccl_comm(*options_.world, engine_, options_.progress);
    mesh_ = std::make_unique<Mesh>(mesh_shape_from(config_), gpu_world_ ? *gpu_world_ : *options_.world);
}

void Trainer::print_arguments() {
    print(version_line());
    print(world_size_line(format_, {config_.world_size, config_.data_parallel_size, config_.context_parallel_size,
                                    config_.tensor_model_parallel_size, config_.pipeline_model_parallel_size}));
    for (const std::string& notice : config_.notices) print(notice);
    if (config_.device.empty() && !Engine::why_no_gpu().empty())
        print(cat("> running on the CPU, since there is no GPU to use: ", Engine::why_no_gpu()));
    if (config_.profile && engine_.device() == Device::cpu)
        print(cat(
            "> --profile marks steps for GPU profilers; on the CPU it changes nothing (perf record sees every step)",
            config_.profile_timeline.empty() ? "" : ", and there is no timeline"));
    if (format_ == LogFormat::core_0_12 || format_ == LogFormat::swiss) {
        const auto& stages = config_.virtual_pipeline_model_parallel_size;
        print(cat("Number of virtual stages per pipeline stage: ", stages ? std::to_string(*stages) : "None"));
    }
    print(parameter_dtype_line(config_.params_dtype));
    print(without_last_newline(arguments_block(config_)));
    if (config_.rampup_batch_size.empty()) {
        const std::int64_t count = make_batch_schedule(config_).at(0).micro_batches;
        print(micro_batches_line(format_, count));
    } else {
        const auto& ramp = config_.rampup_batch_size;
        print(cat("will use batch size rampup starting from global batch size ", ramp[0], " to global batch size ",
                  config_.global_batch_size, " with batch size increments ", ramp[1], " over ", ramp[2], " samples."));
    }
    if (triggers_.on()) {
        make_folders(config_.trigger_path);
        print("Exit trigger setup! run `touch " + triggers_.exit_path() + "` to stop training");
        print("Save trigger setup! run `touch " + triggers_.save_path() + "` to save a checkpoint");
    }
}

void Trainer::set_up_tokenizer() {
    print("> building " + config_.tokenizer_type + " tokenizer ...");
    TokenizerConfig flags;
    flags.tokenizer_type = config_.tokenizer_type;
    flags.vocab_file = config_.vocab_file;
    flags.merge_file = config_.merge_file;
    flags.tokenizer_model = config_.tokenizer_model;
    flags.vocab_size = config_.vocab_size.value_or(0);
    flags.vocab_extra_ids = config_.vocab_extra_ids;
    flags.tiktoken_pattern = config_.tiktoken_pattern;
    flags.tiktoken_num_special_tokens = config_.tiktoken_num_special_tokens;
    flags.tiktoken_special_tokens = config_.tiktoken_special_tokens;
    tokenizer_ = make_tokenizer(flags);
    config_.padded_vocab_size = pad_vocab_size(tokenizer_->vocab_size(), config_.make_vocab_size_divisible_by,
                                               config_.tensor_model_parallel_size);
    print(padded_vocab_line(tokenizer_->vocab_size(), config_.padded_vocab_size));
    agree({{"the size of the vocabulary", cat(tokenizer_->vocab_size())},
           {"the tokenizer's id for the end of documents", cat(tokenizer_->eod())},
           {"the tokenizer's id for padding", cat(tokenizer_->pad().value_or(-1))}});
}

void Trainer::set_up_model() {
    print("building GPT model ...");
    memory_plan_ = reserve_memory(config_, tokenizer_->vocab_size(), workspace_, *mesh_);
    if (memory_plan_.total() > 0) {
        print(cat(" > memory plan: ", size_text(memory_plan_.total()), " of ", size_text(engine_.memory_info().total),
                  " (", memory_plan_.text(), ")"));
    }
    parts_ = std::make_unique<TrainingParts>(config_, tokenizer_->vocab_size(), workspace_, memory_plan_, *mesh_);
    const MeshPlace& place = mesh_->place();
    if (first_copy()) options_.print(parameters_line(place.tp, place.pp, parts_->parameter_count()));
    if (first_copy() && place.tp == 0) {
        for (const ModelSlice& s : slices_of_stage(config_, place.pp)) {
            options_.print(cat(" > layers on pipeline stage ", place.pp, ": ",
                               s.count == 0 ? "none" : cat(s.first, "-", s.first + s.count - 1), " (", s.count, " of ",
                               config_.num_layers, ")"));
        }
    }
    print(cat(" > memory: weights and gradients ", size_text(parts_->weights_bytes()), ", optimizer ",
              size_text(parts_->optimizer_bytes()), ", ", pool_.size(), pool_.size() == 1 ? " thread" : " threads"));
    const PipelineShape shape = pipeline_shape_from(config_);
    upload_.emplace(engine_, held_micro_batches(shape, place.pp));
    const std::string why = why_nothing_is_recorded(config_, engine_.device(), *mesh_);
    pipeline_ = std::make_unique<Pipeline>(Pipeline::Parts{
        parts_->chunks(), parts_->mesh(), workspace_, *upload_, timers_, shape.group, parts_->sync().observer(),
        deferral_from(config_), receive_ahead_from(config_), config_.cuda_graph && why.empty()});
    if (config_.enable_cuda_graph && !why.empty()) print(" > --enable-cuda-graph changes nothing here: " + why);
    upload_->reserve(batch_bytes(config_));
    mesh_->connect(config_.use_distributed_optimizer);
    pipeline_->connect(
        pipeline_->messages({.S = config_.seq_length, .B = config_.micro_batch_size}, shape.micro_batches));
    step_ = std::make_unique<TrainStep>(
        TrainStep::Parts{*pipeline_, parts_->sync(), parts_->optimizer(), parts_->scaler(), timers_},
        parts_->step_settings());
}

void Trainer::set_up_schedules() {
    check_batches(config_);
    batches_.emplace(make_batch_schedule(config_));
    if (config_.skip_train && (!config_.lr || !training_iterations(config_))) return;
    train_iters_ = training_iterations(config_).value_or(0);
    if (config_.train_samples) print(cat("setting training iterations to ", train_iters_));
    schedule_ = make_lr_schedule(config_);
    print("> learning rate decay style: " + config_.lr_decay_style);
}

void Trainer::load() {
    std::optional<CheckpointLocation> where;
    bool finetune = config_.finetune;
    if (!config_.load.empty()) {
        where = find_checkpoint(config_.load, config_.ckpt_step);
        if (!where && finetune && config_.pretrained_checkpoint.empty())
            usage_error("--load ", config_.load,
                        " holds no checkpoint and no model, and --finetune has nothing to begin with; ",
                        "give a folder with config.json and model.safetensors, or one with checkpoints");
        if (!where) {
            for (const std::string& line : checkpoint_lines_.missing(config_.load)) print(line);
        }
    }
    if (!where && !config_.pretrained_checkpoint.empty()) {
        where = find_checkpoint(config_.pretrained_checkpoint);
        if (!where) usage_error("--pretrained-checkpoint ", config_.pretrained_checkpoint, " holds no checkpoint");
        finetune = true;
    }
    loaded_ = where.has_value();
    if (mesh_->world().size() > 1)
        agree({{"the iteration found in --load", cat(where ? where->iteration : 0)},
               {"whether weights were found in --load", where ? "yes" : "no"},
               {"the checkpoint found", where ? checkpoint_fingerprint(*where) : "none"}});
    if (where) {
        load_from(*where, finetune);
    } else if (config_.exit_on_missing_checkpoint && !config_.load.empty()) {
        usage_error("--load ", config_.load, " holds no checkpoint, and --exit-on-missing-checkpoint is set");
    }
    first_iteration_ = state_.iteration;
}

void Trainer::load_from(const CheckpointLocation& location, bool finetune) {
    print(checkpoint_lines_.loading(location));
    const bool resume = location.has_state && !finetune && !location.release;
    if (resume) print_changes(read_checkpoint_state(location));
    const LoadResult result = load_checkpoint(
        location, {parts_->model_config(), parts_->params(), parts_->optimizer().state(), workspace_.ctx().temp},
        {.finetune = finetune, .optimizer = !config_.no_load_optim});
    print(checkpoint_lines_.version());
    for (const std::string& notice : result.notices) print("WARNING: " + notice);
    const Exec exec = workspace_.ctx().temp;
    if (!result.optimizer_loaded) parts_->optimizer().copy_values_to_main(exec);
    if (resume) {
        state_ = run_state_from(result.state);
        if (!config_.no_load_optim) {
            schedule_ =
                schedule_at_resume(schedule_, schedule_from(result.state, schedule_),
                                   config_.override_opt_param_scheduler, config_.use_checkpoint_opt_param_scheduler);
            restore_scaler(result.state, parts_->scaler());
            if (result.optimizer_loaded) parts_->optimizer().set_steps(optimizer_steps_from(result.state));
        } else {
            state_.schedule_samples = 0;
        }
        if (config_.load == config_.save) saved_at_ = state_.iteration;
    } else if (!finetune) {
        print("    the checkpoint holds weights only: iteration, optimizer and schedule start fresh");
    }
    print(checkpoint_lines_.loaded(location, state_.iteration));
}

void Trainer::print_changes(const CheckpointState& saved) {
    const std::vector<ConfigChange> changes = diff_configs(saved.arguments, config_);
    // A changed --hidden-size changes what follows from it too; the user wants to hear of the flag he gave.
    const ConfigChange* refused = nullptr;
    for (const ConfigChange& change : changes) {
        if (!change.refused) continue;
        if (refused == nullptr || (!was_given(config_, *refused) && was_given(config_, change))) refused = &change;
    }
    if (refused != nullptr) {
        usage_error(refused->name, " ", refused->new_value, " differs from the checkpoint's ", refused->old_value, ": ",
                    refused->reason);
    }
    for (const ConfigChange& change : changes) {
        print(cat("    ", change.name, " changes from ", change.old_value, " to ", change.new_value,
                  change.reason.empty() ? "" : ": " + change.reason));
    }
    const std::int64_t padded = saved.arguments.value("padded_vocab_size", config_.padded_vocab_size);
    if (padded != config_.padded_vocab_size)
        print(cat("    the padded vocabulary changes from ", padded, " to ", config_.padded_vocab_size,
                  ", a multiple of --make-vocab-size-divisible-by ", config_.make_vocab_size_divisible_by, " times ",
                  config_.tensor_model_parallel_size,
                  " tensor ranks: padding takes part in the loss, which goes on a little differently"));
}

void Trainer::set_up_data() {
    print("> building train, validation, and test datasets ...");
    const std::int64_t samples = config_.train_samples.value_or(train_iters_ * config_.global_batch_size);
    const TargetSizes sizes = target_sizes(config_, train_iters_, samples);
    for (const std::string& line : target_size_lines(sizes)) print(line);
    print("> building train, validation, and test datasets for GPT ...");
    // Rank 0 builds what is missing of the index files; the others find them.
    if (!leads()) mesh_->world().barrier();
    data_ = std::make_unique<DataFeed>(config_, *tokenizer_, sizes, mesh_->place().dp);
    if (leads()) mesh_->world().barrier();
    check_enough_data();
    for (const std::string& note : data_->datasets().notes) print(note);
    print_block(without_last_newline(data_->datasets().report()));
    print("> finished creating GPT datasets ...");
    data_->start_at(Split::train, state_.consumed_train_samples);
    data_->start_at(Split::valid, state_.consumed_valid_samples);
}

/// A blend without weights repeats nothing. That it ends too soon is better known now than in the middle of the run.
void Trainer::check_enough_data() const {
    if (config_.dataloader_type != "single") return;
    const GptDatasets& all = data_->datasets();
    for (const std::optional<GptData>* data : {&all.train, &all.valid, &all.test}) {
        if (!*data || !(*data)->samples || !(*data)->requested) continue;
        const std::int64_t there = (*data)->samples->size(), wanted = *(*data)->requested;
        if (there < wanted && !(config_.skip_train && data == &all.train))
            usage_error("the ", split_name((*data)->split), " data has ", there, " samples and this run takes ", wanted,
                        "; give weights in --data-path to repeat it, add data, or ask for fewer iterations");
    }
}

void Trainer::set_up_records() {
    std::string path = config_.metrics_file;
    if (path.empty() && !config_.save.empty() && !config_.skip_train) path = config_.save + "/metrics.jsonl";
    if (!leads()) path.clear();
    metrics_ = std::make_unique<MetricsFile>(path, state_.iteration, [this](const std::string& line) { print(line); });
    if (metrics_->dropped() > 0) {
        print(cat("> ", path, ": dropped ", metrics_->dropped(), " lines of iterations after ", state_.iteration));
    }
    const char* job = std::getenv("SLURM_JOB_ID");
    const double tokens = static_cast<double>(state_.consumed_train_samples) * static_cast<double>(config_.seq_length);
    progress_ = std::make_unique<ProgressLog>(
        ProgressLog::Settings{config_.log_progress && leads() ? config_.save : "", format_, config_.world_size,
                              job == nullptr ? "" : job, state_.floating_point_operations, tokens});
    progress_->starting();
}

}  // namespace tera
