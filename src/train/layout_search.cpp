#include "train/layout_search.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "config/fields.h"
#include "core/build_info.h"
#include "core/error.h"
#include "train/format_text.h"
#include "train/plan.h"
#include "train/run_schedules.h"

namespace tera {
namespace {

constexpr auto npos = std::string::npos;

/// One combination of flags.
struct Candidate {
    std::int64_t tp = 1, pp = 1, cp = 1, micro_batch = 1, chunks = 1;
    enum class Recompute { none, selective, full } recompute = Recompute::none;
};

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t most) {
    std::vector<std::int64_t> all;
    for (std::int64_t d = 1; d <= std::min(n, most); ++d) {
        if (n % d == 0) all.push_back(d);
    }
    return all;
}

std::string flags_of(const Candidate& c, bool distributed) {
    std::string flags = cat("--tensor-model-parallel-size ", c.tp, " --pipeline-model-parallel-size ", c.pp);
    if (c.tp > 1) flags += " --sequence-parallel";
    if (c.cp > 1) flags += cat(" --context-parallel-size ", c.cp);
    if (c.chunks > 1) flags += cat(" --num-virtual-stages-per-pipeline-rank ", c.chunks);
    if (distributed) flags += " --use-distributed-optimizer";
    flags += cat(" --micro-batch-size ", c.micro_batch);
    if (c.recompute == Candidate::Recompute::selective) flags += " --recompute-granularity selective";
    if (c.recompute == Candidate::Recompute::full)
        flags += " --recompute-granularity full --recompute-method uniform --recompute-num-layers 1";
    return flags;
}

/// Flags that a search chooses, by the name of their value.
const std::set<std::string> chosen_flags = {"tensor_model_parallel_size",
                                            "pipeline_model_parallel_size",
                                            "context_parallel_size",
                                            "sequence_parallel",
                                            "micro_batch_size",
                                            "num_layers_per_virtual_pipeline_stage",
                                            "num_virtual_stages_per_pipeline_rank",
                                            "microbatch_group_size_per_vp_stage",
                                            "decoder_first_pipeline_num_layers",
                                            "decoder_last_pipeline_num_layers",
                                            "defer_embedding_wgrad_compute",
                                            "recompute_granularity",
                                            "recompute_activations",
                                            "checkpoint_activations",
                                            "recompute_method",
                                            "recompute_num_layers",
                                            "recompute_modules",
                                            "distribute_saved_activations"};

/// Those that were given and that `flags` do not give again.
std::string replaced_by(const std::string& flags, const RunConfig& given) {
    std::string out;
    for (const Field& field : fields()) {
        const std::string flag = "--" + field.names[0];
        if (chosen_flags.count(field.dest) && given.given.count(field.dest) && (flags + " ").find(flag + " ") == npos)
            out += (out.empty() ? "" : " ") + flag;
    }
    return out;
}

class Search {
  public:
    Search(const RunConfig& config, const SearchRequest& request)
        : given_(config), base_(without_layout(config)), request_(request) {
        if (base_.device.empty() && build_info().cuda) base_.device = "cuda";
    }

    std::vector<LayoutChoice> run() {
        const std::int64_t N = request_.gpus;
        for (const std::int64_t tp :
             divisors(N, std::min<std::int64_t>(request_.gpus_per_node, base_.num_attention_heads))) {
            for (const std::int64_t pp : divisors(N / tp, base_.num_layers)) {
                for (const std::int64_t cp : context_sizes(N / tp / pp))
                    try_micro_batches({.tp = tp, .pp = pp, .cp = cp});
            }
        }
        if (!possible_) usage_error("no layout of ", N, " GPUs can be: ", why_not_);
        std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
            return a.tokens_per_second_per_gpu > b.tokens_per_second_per_gpu;
        });
        std::vector<LayoutChoice> best;
        for (LayoutChoice& choice : found_) {
            if (best.size() == request_.most) break;
            if (holds_with_all_micro_batches(choice)) best.push_back(std::move(choice));
        }
        return best;
    }

  private:
    /// Sharing a sequence pays when it is long.
    std::vector<std::int64_t> context_sizes(std::int64_t ranks) const {
        return divisors(ranks, std::max<std::int64_t>(1, base_.seq_length / 8192));
    }

    void try_micro_batches(Candidate c) {
        for (c.micro_batch = 1; c.micro_batch <= 8; c.micro_batch *= 2) {
            for (c.chunks = 1; c.chunks <= (c.pp > 1 ? 4 : 1); c.chunks *= 2) {
                // What recomputes more is slower: the first that fits is enough.
                for (const auto recompute :
                     {Candidate::Recompute::none, Candidate::Recompute::selective, Candidate::Recompute::full}) {
                    c.recompute = recompute;
                    if (try_one(c)) break;
                }
            }
        }
    }

    /// True if it fits, or cannot be at all.
    bool try_one(const Candidate& c) {
        LayoutChoice choice;
        try {
            choice.config = configured(c);
            const BatchSchedule batches = make_batch_schedule(choice.config);
            check_batches(choice.config);
            choice.batch = batches.full().running_batch;
            choice.micro_batches = batches.full().micro_batches;
            const VocabSize vocab = find_vocab_size(choice.config);
            choice.config.padded_vocab_size =
                pad_vocab_size(vocab.size, choice.config.make_vocab_size_divisible_by, c.tp);
            choice.plan = plan_by_few(choice, vocab.size);
        } catch (const UsageError& e) {
            if (why_not_.empty()) why_not_ = e.what();
            return true;
        }
        possible_ = true;
        if (!fits(choice)) return false;
        choice.seconds = seconds_of(c, choice);
        choice.tokens_per_second_per_gpu = static_cast<double>(choice.batch * choice.config.seq_length) /
                                           choice.seconds / static_cast<double>(request_.gpus);
        choice.flags = flags_of(c, choice.config.use_distributed_optimizer);
        choice.replaced = replaced_by(choice.flags, given_);
        found_.push_back(std::move(choice));
        return true;
    }

    bool fits(const LayoutChoice& choice) const {
        const double room = (request_.memory_gib - request_.reserve_gib) * 0x1p30;
        return static_cast<double>(choice.plan.fullest().total()) <= room;
    }

    /// Plans the whole step; false if it does not fit after all, or its micro-batches cannot be shared out.
    bool holds_with_all_micro_batches(LayoutChoice& choice) const {
        try {
            choice.plan = plan_layout(choice.config, find_vocab_size(choice.config).size, choice.micro_batches);
        } catch (const UsageError&) {
            return false;
        }
        return fits(choice);
    }

    /// The plan of a step, nearly: the pipeline is full after some micro-batches, and the rest sends as much and keeps
    /// hardly more.
    static LayoutPlan plan_by_few(const LayoutChoice& choice, std::int64_t vocab) {
        const RunConfig& c = choice.config;
        const std::int64_t all = choice.micro_batches, few = std::min(all, 3 * c.pipeline_model_parallel_size);
        LayoutPlan plan = plan_layout(c, vocab, few);
        plan.bubble = pipeline_bubble(c, all);
        for (MemoryPlan& stage : plan.stages) {
            for (const char* what : {"tensor", "context", "pipeline"}) {
                const auto at = stage.sent.find(what);
                if (at == stage.sent.end()) continue;
                at->second.bytes *= static_cast<double>(all) / static_cast<double>(few);
                at->second.calls = at->second.calls * all / few;
            }
        }
        return plan;
    }

    RunConfig configured(const Candidate& c) const {
        RunConfig config = base_;
        config.tensor_model_parallel_size = c.tp;
        config.pipeline_model_parallel_size = c.pp;
        config.context_parallel_size = c.cp;
        config.sequence_parallel = c.tp > 1;
        config.micro_batch_size = c.micro_batch;
        config.use_distributed_optimizer = request_.gpus / (c.tp * c.pp) > 1 || base_.overlap_param_gather;
        if (c.chunks > 1) config.num_virtual_stages_per_pipeline_rank = c.chunks;
        using R = Candidate::Recompute;
        config.recompute_granularity = c.recompute == R::none ? "" : c.recompute == R::full ? "full" : "selective";
        config.recompute_method = c.recompute == R::full ? "uniform" : "";
        config.recompute_num_layers = c.recompute == R::full ? 1 : 0;
        validate_and_derive(config, request_.gpus);
        return config;
    }

    double seconds_of(const Candidate& c, const LayoutChoice& choice) const {
        const double flops = flops_per_step(flops_formula_of(choice.config.log_format),
                                            flops_shape(choice.config, choice.config.padded_vocab_size), choice.batch);
        const bool one_node = request_.gpus <= request_.gpus_per_node;
        const bool full = c.recompute == Candidate::Recompute::full;
        const double compute = flops * (full ? 4.0 / 3 : 1) / (static_cast<double>(request_.gpus) * request_.sustained);
        const auto& sent = choice.plan.fullest().sent;
        const auto time_of = [&](const char* what, bool within) {
            const auto at = sent.find(what);
            return at == sent.end() ? 0 : at->second.bytes / (within ? request_.within_node : request_.between_nodes);
        };
        const bool context_within = c.tp * c.cp <= request_.gpus_per_node;
        const double busy = compute + time_of("tensor", true) + 0.5 * time_of("context", context_within);
        return busy / (1 - choice.plan.bubble) + 0.5 * time_of("data", one_node) + time_of("pipeline", one_node);
    }

    RunConfig given_, base_;
    SearchRequest request_;
    std::vector<LayoutChoice> found_;
    bool possible_ = false;  ///< some layout can be, whether or not it fits
    std::string why_not_;    ///< the simplest cannot
};

}  // namespace

RunConfig without_layout(RunConfig c) {
    for (auto* size : {&c.tensor_model_parallel_size, &c.pipeline_model_parallel_size, &c.context_parallel_size,
                       &c.micro_batch_size})
        *size = 1;
    for (auto* number : {&c.num_layers_per_virtual_pipeline_stage, &c.num_virtual_stages_per_pipeline_rank,
                         &c.microbatch_group_size_per_vp_stage, &c.decoder_first_pipeline_num_layers,
                         &c.decoder_last_pipeline_num_layers})
        number->reset();
    c.sequence_parallel = c.defer_embedding_wgrad_compute = c.distribute_saved_activations = false;
    c.recompute_granularity.clear();
    c.recompute_method.clear();
    c.recompute_num_layers = 0;
    c.recompute_modules.clear();
    return c;
}

std::vector<LayoutChoice> search_layouts(const RunConfig& config, const SearchRequest& request) {
    return Search(config, request).run();
}

std::string layouts_text(const SearchRequest& request, const std::vector<LayoutChoice>& choices) {
    char row[256];
    std::string out =
        cat("layouts for ", request.gpus, " GPUs of ", request.memory_gib, " GiB, best first\n",
            "  tensor pipeline context  data  micro-batch   batch chunks  recompute      memory  bubble %  "
            "step s  tokens/s/GPU\n");
    for (const LayoutChoice& choice : choices) {
        const RunConfig& c = choice.config;
        std::snprintf(row, sizeof row,
                      "  %6lld %8lld %7lld %5lld %12lld %7lld %6lld  %-9s  %10s  %8.1f  %6.2f  %12.0f\n",
                      static_cast<long long>(c.tensor_model_parallel_size),
                      static_cast<long long>(c.pipeline_model_parallel_size),
                      static_cast<long long>(c.context_parallel_size), static_cast<long long>(c.data_parallel_size),
                      static_cast<long long>(c.micro_batch_size), static_cast<long long>(choice.batch),
                      static_cast<long long>(c.virtual_pipeline_model_parallel_size.value_or(1)),
                      c.recompute_granularity.empty() ? "none" : c.recompute_granularity.c_str(),
                      size_text(static_cast<double>(choice.plan.fullest().total())).c_str(), 100 * choice.plan.bubble,
                      choice.seconds, choice.tokens_per_second_per_gpu);
        out += row;
    }
    std::snprintf(row, sizeof row,
                  "  (step s and tokens/s/GPU are estimates at %.0f TFLOP/s sustained, %.0f GB/s within a node of "
                  "%lld, %.0f between)\n",
                  request.sustained / 1e12, request.within_node / 1e9, static_cast<long long>(request.gpus_per_node),
                  request.between_nodes / 1e9);
    out += row;
    if (choices[0].config.given.count("global_batch_size") == 0)
        out +=
            "  (no --global-batch-size: a step is one micro-batch on each data-parallel rank; give the batch you "
            "mean)\n";
    out += "flags of the first: " + choices[0].flags + "\n";
    if (!choices[0].replaced.empty()) out += "in place of: " + choices[0].replaced + "\n";
    return out;
}

}  // namespace tera
