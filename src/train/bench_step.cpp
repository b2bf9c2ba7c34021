#include "train/bench_step.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <fstream>
#include <random>

#include "core/error.h"
#include "core/uploader.h"
#include "ops/convert.h"
#include "train/data_feed.h"
#include "train/plan.h"
#include "train/run_schedules.h"
#include "train/training_parts.h"

namespace tera {
namespace {

/// Since exec: the program's own loading counts too. The kernel keeps the start in ticks of a hundredth of a second.
double seconds_since_process_start() {
    std::ifstream in("/proc/self/stat");
    std::string text;
    std::getline(in, text);
    const auto after_name = text.rfind(')');
    TERA_CHECK(after_name != text.npos, "/proc/self/stat: ", text);
    std::istringstream fields(text.substr(after_name + 1));
    std::string field;
    for (int i = 3; i <= 22; ++i) fields >> field;  // the name was field 2
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
           std::stod(field) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

/// Random tokens. Where the flags treat documents apart, some end in every sample.
class RandomSamples final : public SampleDataset {
  public:
    RandomSamples(const GptSampleOptions& options, std::int64_t vocab) : options_(options), vocab_(vocab) {}

    std::int64_t size() const override { return std::int64_t{1} << 40; }
    std::int64_t sample_length() const override { return options_.sequence_length + options_.extra_tokens; }
    std::int32_t read(std::int64_t i, std::int32_t* out) const override {
        std::mt19937_64 engine(static_cast<std::uint64_t>(1234 + i));
        const bool documents = options_.eod_id >= 0;
        std::uniform_int_distribution<std::int32_t> draw(0, static_cast<std::int32_t>(vocab_ - (documents ? 2 : 1)));
        std::uniform_int_distribution<std::int64_t> length(1, std::max<std::int64_t>(options_.sequence_length / 2, 1));
        std::int64_t left = length(engine);
        for (std::int64_t k = 0; k < sample_length(); ++k) {
            const bool end = documents && --left == 0;
            out[k] = end ? options_.eod_id : draw(engine);
            if (end) left = length(engine);
        }
        return 0;
    }

  private:
    GptSampleOptions options_;
    std::int64_t vocab_;
};

/// Micro-batches as pretrain makes them, made before anything is timed and handed out in turn.
class RandomBatches {
  public:
    RandomBatches(const RunConfig& c, std::int64_t vocab, std::int64_t count) {
        GptSampleOptions options = sample_options_from(c);
        if (c.reset_position_ids || c.reset_attention_mask || c.eod_mask_loss)
            options.eod_id = static_cast<std::int32_t>(vocab - 1);
        const RandomSamples samples(options, vocab);
        for (std::int64_t i = 0; i < count; ++i) {
            SampleNumbers numbers;
            for (std::int64_t b = 0; b < c.micro_batch_size; ++b) numbers.index.push_back(i * c.micro_batch_size + b);
            numbers.consumed = numbers.index;
            batches_.push_back(make_batch(samples, options, numbers));
        }
    }

    const MicroBatch& next() { return view_ = view_of(batches_[at_++ % batches_.size()]); }

  private:
    std::vector<Batch> batches_;
    std::size_t at_ = 0;
    MicroBatch view_;
};

void fill_in(RunConfig& c, int steps) {
    if (!c.train_iters && !c.train_samples) c.train_iters = steps;
    if (!c.lr) c.lr = 1e-4;
    c.mock_data = true;
    for (auto* paths : {&c.data_path, &c.train_data_path, &c.valid_data_path, &c.test_data_path}) paths->clear();
    c.data_args_path.clear();
    c.per_split_data_args_path.clear();
}

const std::vector<std::string> phase_names = {"forward-compute", "backward-compute", "optimizer-clip-main-grad",
                                              "optimizer-inner-step"};

std::size_t bytes_of_state(const Optimizer& optimizer, bool main) {
    std::size_t bytes = 0;
    for (const OptimizerTensor& t : optimizer.state()) bytes += (t.kind == "master") == main ? t.tensor.own_bytes() : 0;
    return bytes;
}

/// Everything of a run that a step needs, kept together while it is measured.
class StepBench {
  public:
    StepBench(RunConfig config, const BenchOptions& options)
        : options_(options), pool_(static_cast<int>(config.threads)) {
        result_.loaded_at = seconds_since_process_start();
        result_.config = std::move(config);
    }

    BenchResult run();

  private:
    const RunConfig& config() const { return result_.config; }
    void set_up();
    void describe();
    void time_steps();
    void note_memory();
    void time_phases();
    void trace();
    void step(TrainStep& one);

    const BenchOptions& options_;
    BenchResult result_;
    ThreadPool pool_;
    std::optional<Engine> engine_;
    std::optional<Workspace> workspace_;
    std::optional<BatchUpload> upload_;
    std::optional<TrainingParts> parts_;
    std::optional<RandomBatches> batches_;
    std::size_t upload_bytes_ = 0;
    Timers no_timers_{0}, phase_timers_{2};
    std::optional<Pipeline> plain_pipeline_, timed_pipeline_;
    std::optional<TrainStep> plain_step_, timed_step_;
    std::int64_t steps_done_ = 0;
    bool skipped_ = false, scale_falls_ = false;  ///< the last step; any
    int settled_ = 0;                             ///< steps since the last that was skipped
};

BenchResult StepBench::run() {
    set_up();
    describe();
    time_steps();
    note_memory();
    options_.progress("phases");
    time_phases();
    trace();
    options_.progress("ceilings");
    result_.ceilings = measure_ceilings(*workspace_, parts_->params(), config().seq_length * config().micro_batch_size);
    return std::move(result_);
}

void StepBench::set_up() {
    options_.progress("device");
    engine_.emplace(device_named(config().device), Engine::gpu_of_rank(static_cast<int>(config().local_rank)));
    engine_->synchronize();
    result_.device_at = seconds_since_process_start();
    options_.progress("model");
    workspace_.emplace(*engine_, pool_);
    upload_.emplace(*engine_);
    const VocabSize vocab = find_vocab_size(config());
    result_.vocab_source = vocab.source;
    result_.config.padded_vocab_size =
        pad_vocab_size(vocab.size, config().make_vocab_size_divisible_by, config().tensor_model_parallel_size);
    engine_->set_deterministic(config().deterministic_mode);
    const MemoryPlan plan = reserve_memory(config(), vocab.size, *workspace_, Mesh());
    result_.planned = plan.total();
    upload_bytes_ = plan.batches;
    parts_.emplace(config(), vocab.size, *workspace_, plan);
    result_.micro_batches = make_batch_schedule(config()).full().micro_batches;
    batches_.emplace(config(), vocab.size, std::clamp<std::int64_t>(2 * result_.micro_batches, 2, 16));
    const auto make = [&](std::optional<Pipeline>& pipeline, std::optional<TrainStep>& step, Timers& timers) {
        pipeline.emplace(Pipeline::Parts{.chunks = parts_->chunks(),
                                         .mesh = parts_->mesh(),
                                         .workspace = *workspace_,
                                         .upload = *upload_,
                                         .timers = timers,
                                         .records = config().cuda_graph});
        step.emplace(TrainStep::Parts{*pipeline, parts_->sync(), parts_->optimizer(), parts_->scaler(), timers},
                     parts_->step_settings());
    };
    make(plain_pipeline_, plain_step_, no_timers_);
    make(timed_pipeline_, timed_step_, phase_timers_);
    phase_timers_.wait_with([this] { engine_->synchronize(); });
    engine_->synchronize();
    result_.model_at = seconds_since_process_start();
}

void StepBench::describe() {
    result_.device = engine_->name();
    result_.peak_tflops = peak_bf16_tflops(result_.device);
    result_.parameters = parts_->parameter_count();
    result_.threads = pool_.size();
    const std::int64_t samples = result_.micro_batches * config().micro_batch_size;
    result_.tokens_per_step = samples * config().seq_length;
    const FlopsShape shape = flops_shape(config(), config().padded_vocab_size);
    result_.flops_causal = flops_per_step(FlopsFormula::core_0_12, shape, samples);
    result_.flops_full = flops_per_step(FlopsFormula::core_0_7, shape, samples);
}

void StepBench::step(TrainStep& one) {
    const StepRates rates{*config().lr, config().weight_decay, config().decoupled_lr.value_or(-1)};
    const StepOutcome outcome =
        one.run([&]() -> const MicroBatch& { return batches_->next(); }, result_.micro_batches, rates, ++steps_done_);
    result_.last_loss = outcome.mean_loss();
    skipped_ = outcome.skipped;
    settled_ = skipped_ ? 0 : settled_ + 1;
    scale_falls_ = scale_falls_ || skipped_;
}

// A step returns when its loss is known, while the device still updates the weights; the next one's work queues up
// behind. So the time from one return to the next is the time of a whole step.
void StepBench::time_steps() {
    options_.progress("first step");
    step(*plain_step_);
    result_.first_step_at = seconds_since_process_start();
    result_.first_loss = result_.last_loss;
    options_.progress("warm-up");
    // A loss scale begins high: steps that only lower it do no update.
    constexpr int most_for_scale = 64, enough = 5;
    const auto unsettled = [&] { return scale_falls_ && settled_ < enough; };
    for (int i = 1; i < options_.warmup || (unsettled() && i < options_.warmup + most_for_scale); ++i)
        step(*plain_step_);
    options_.progress("timed steps");
    for (int i = 0; i < options_.steps; ++i) {
        const auto start = std::chrono::steady_clock::now();
        step(*plain_step_);
        result_.step_seconds.push_back(seconds_since(start));
        result_.skipped_steps += skipped_;
    }
    engine_->synchronize();
}

void StepBench::note_memory() {
    std::size_t values = 0, grads = 0;
    for (const Param* p : parts_->params()) {
        values += p->value.bytes();
        grads += p->grad.bytes();
    }
    const std::size_t main = bytes_of_state(parts_->optimizer(), true),
                      moments = bytes_of_state(parts_->optimizer(), false);
    const Ctx ctx = workspace_->ctx();
    result_.memory = {{"weights", values},
                      {"gradients", grads},
                      {"main weights", main},
                      {"moments", moments},
                      {"alignment and tables", parts_->held_bytes() - values - grads - main - moments},
                      {"activations, kept", ctx.keep.arena->held()},
                      {"activations, temporary", ctx.temp.arena->held()},
                      {"activations, recomputed", ctx.redo.arena->held()},
                      {"rotary angles", parts_->table_bytes()},
                      {"upload buffers", upload_bytes_},
                      {"library workspace", engine_->own_bytes()}};
    const Engine::Memory seen = engine_->memory_info();
    result_.device_total = seen.total;
    result_.device_used = seen.total - seen.free;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    result_.resident = static_cast<std::size_t>(usage.ru_maxrss) * 1024;
}

void StepBench::time_phases() {
    step(*timed_step_);
    engine_->synchronize();
    for (const std::string& name : phase_names) result_.phases.emplace_back(name, phase_timers_.seconds(name) * 1e3);
}

void StepBench::trace() {
    if (engine_->gpu() == nullptr) {
        result_.why_not_traced = "the step ran on the CPU";
        return;
    }
    options_.progress("kernel trace");
    KernelTrace trace;
    result_.why_not_traced = trace.why_not();
    if (!trace.ready()) return;
    const Exec exec = workspace_->ctx().temp;
    trace.start();  // the tool's own start-up is not the step's
    ops::fill_zero(exec, exec.tensor(DType::f32, {1}));
    trace.stop();
    workspace_->reset();
    const int steps = result_.median_seconds() > 1 ? 1 : options_.traced_steps;
    trace.start();
    for (int i = 0; i < steps; ++i) step(*plain_step_);
    result_.kernels = summarize(trace.stop(), steps);
    result_.traced = true;
}

}  // namespace

double BenchResult::median_seconds() const {
    std::vector<double> sorted = step_seconds;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t n = sorted.size();
    return n == 0 ? 0 : n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double peak_bf16_tflops(const std::string& device_name) {
    const auto has = [&](const std::string& part) {
        const auto at = device_name.find(part), end = at + part.size();
        return at != device_name.npos && (end == device_name.size() || std::isdigit(device_name[end]) == 0);
    };
    const bool hopper = has("H100") || has("H200");
    if (hopper && has("PCIe")) return 756;
    if (hopper && has("NVL")) return 835;
    if (hopper) return 989;
    if (has("A100")) return 312;
    return 0;
}

BenchResult bench_step(RunConfig config, const BenchOptions& options) {
    if (options.warmup < 1 || options.steps < 1) usage_error("bench step: --warmup and --steps must be at least 1");
    fill_in(config, options.warmup + options.steps);
    validate_and_derive(config, config.world_size);
    require_runnable(config);
    if (config.world_size != 1) usage_error("world size ", config.world_size, ": bench step measures one rank");
    return StepBench(std::move(config), options).run();
}

}  // namespace tera
