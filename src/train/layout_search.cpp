#include "train/layout_search.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>

#include "config/fields.h"
#include "core/build_info.h"
#include "core/error.h"
#include "parallel/layer_plan.h"
#include "train/format_text.h"
#include "train/plan.h"
#include "train/run_schedules.h"

namespace tera {
namespace {

constexpr auto npos = std::string::npos;

/// How layers are shared out among stages: evenly, with embedding or loss counted as a layer, or with ends of their
/// own.
struct Split {
    bool embedding = false, loss = false;
    std::optional<std::int64_t> first{}, last{};
};

/// One combination of flags.
struct Candidate {
    std::int64_t tp = 1, pp = 1, cp = 1, micro_batch = 1, chunks = 1;
    Split split{};
    enum class Recompute { none, selective, full } recompute = Recompute::none;
};

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t most) {
    std::vector<std::int64_t> all;
    for (std::int64_t d = 1; d <= std::min(n, most); ++d) {
        if (n % d == 0) all.push_back(d);
    }
    return all;
}

std::string flags_of(const Candidate& c, const RunConfig& config) {
    std::string flags = cat("--tensor-model-parallel-size ", c.tp, " --pipeline-model-parallel-size ", c.pp);
    if (c.tp > 1) flags += " --sequence-parallel";
    if (c.cp > 1) flags += cat(" --context-parallel-size ", c.cp);
    if (c.chunks > 1) flags += cat(" --num-virtual-stages-per-pipeline-rank ", c.chunks);
    if (config.overlap_p2p_comm_warmup_flush) flags += " --overlap-p2p-communication-warmup-flush";
    if (c.split.embedding) flags += " --account-for-embedding-in-pipeline-split";
    if (c.split.loss) flags += " --account-for-loss-in-pipeline-split";
    if (c.split.first) flags += cat(" --decoder-first-pipeline-num-layers ", *c.split.first);
    if (c.split.last) flags += cat(" --decoder-last-pipeline-num-layers ", *c.split.last);
    if (config.use_distributed_optimizer) flags += " --use-distributed-optimizer";
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
                                            "overlap_p2p_comm_warmup_flush",
                                            "decoder_first_pipeline_num_layers",
                                            "decoder_last_pipeline_num_layers",
                                            "account_for_embedding_in_pipeline_split",
                                            "account_for_loss_in_pipeline_split",
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
        if (const std::string why = uncounted_flag(base_); !why.empty()) usage_error("no memory can be counted: ", why);
        RunConfig on_one = base_;
        validate_and_derive(on_one, 1);
        vocab_ = find_vocab_size(on_one).size;
        work_ = work_of_sample(with_vocabulary(on_one));
        const std::int64_t N = request_.gpus;
        for (const std::int64_t tp : divisors(N, base_.num_attention_heads)) {
            if (!within_node(tp)) continue;
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
    bool one_node() const { return request_.gpus <= request_.gpus_per_node; }
    /// Whether groups of so many neighbours lie in one node each.
    bool within_node(std::int64_t neighbours) const { return one_node() || request_.gpus_per_node % neighbours == 0; }

    /// Sharing a sequence pays when it is long.
    std::vector<std::int64_t> context_sizes(std::int64_t ranks) const {
        return divisors(ranks, std::max<std::int64_t>(1, base_.seq_length / 8192));
    }

    void try_micro_batches(const Candidate& layout) {
        std::vector<Candidate> pipelines;
        for (std::int64_t chunks = 1; chunks <= (layout.pp > 1 ? 4 : 1); chunks *= 2) {
            Candidate c = layout;
            c.chunks = chunks;
            add_splits(c, pipelines);
        }
        for (std::int64_t micro_batch = 1; micro_batch <= 8; micro_batch *= 2) {
            for (Candidate c : pipelines) {
                c.micro_batch = micro_batch;
                // What recomputes more is slower: the first that fits is enough.
                for (const auto recompute :
                     {Candidate::Recompute::none, Candidate::Recompute::selective, Candidate::Recompute::full}) {
                    c.recompute = recompute;
                    if (try_one(c)) break;
                }
            }
        }
    }

    /// Even stages, and those whose slowest has the least work, where that is less.
    void add_splits(Candidate c, std::vector<Candidate>& pipelines) const {
        pipelines.push_back(c);
        if (c.pp == 1) return;
        double least = idle_share(c);
        for (const Split& split : {Split{.loss = true}, Split{.embedding = true, .loss = true}, ends_of(c)}) {
            Candidate other = c;
            other.split = split;
            const double idle = idle_share(other);
            if (idle > least - 1e-9) continue;
            least = idle;
            if (pipelines.back().split.loss || pipelines.back().split.last) pipelines.pop_back();
            pipelines.push_back(other);
        }
    }

    /// 1 if its layers cannot be split so.
    double idle_share(const Candidate& c) const {
        try {
            return pipeline_bubble(with_vocabulary(configured(c)), c.pp);
        } catch (const UsageError&) {
            return 1;
        }
    }

    /// The last stage does with fewer layers what the head costs it, the first takes what is left.
    Split ends_of(const Candidate& c) const {
        const std::int64_t layers = base_.num_layers;
        const double head = work_.head / work_.layer;
        for (std::int64_t most = c.chunks; most < layers; most += c.chunks) {
            const auto beside_head = static_cast<std::int64_t>(static_cast<double>(most) - head);
            const std::int64_t last = std::max<std::int64_t>(0, beside_head / c.chunks * c.chunks);
            const std::int64_t first = layers - most * (c.pp - 2) - last;
            if (first >= 0 && first <= most) return {.first = first, .last = last};
        }
        return {.loss = true};
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
            choice.config = with_vocabulary(std::move(choice.config));
            choice.plan = plan_by_few(choice, vocab_);
        } catch (const UsageError& e) {
            if (why_not_.empty()) why_not_ = e.what();
            return true;
        }
        possible_ = true;
        if (!fits(choice)) return false;
        choice.seconds = seconds_of(c, choice);
        choice.tokens_per_second_per_gpu = static_cast<double>(choice.batch * choice.config.seq_length) /
                                           choice.seconds / static_cast<double>(request_.gpus);
        choice.flags = flags_of(c, choice.config);
        choice.replaced = replaced_by(choice.flags, given_);
        found_.push_back(std::move(choice));
        return true;
    }

    bool fits(const LayoutChoice& choice) const {
        const double room = (request_.memory_gib - request_.reserve_gib) * 0x1p30;
        return static_cast<double>(choice.plan.fullest().total()) <= room;
    }

    /// Plans the whole step; false if it does not fit after all.
    bool holds_with_all_micro_batches(LayoutChoice& choice) const {
        choice.plan = plan_layout(choice.config, vocab_, choice.micro_batches);
        return fits(choice);
    }

    /// The plan of a step, nearly: the pipeline is full after some micro-batches, and the rest sends as much and keeps
    /// hardly more. The fullest stage is at an end, or the first between them: it keeps more micro-batches than the
    /// next.
    static LayoutPlan plan_by_few(const LayoutChoice& choice, std::int64_t vocab) {
        const RunConfig& c = choice.config;
        const std::int64_t all = choice.micro_batches, few = std::min(all, 3 * c.pipeline_model_parallel_size);
        std::vector<int> stages;
        for (int stage = 0; stage < c.pipeline_model_parallel_size; ++stage) {
            if (stage < 2 || stage + 1 == c.pipeline_model_parallel_size) stages.push_back(stage);
        }
        LayoutPlan plan = plan_stages(c, vocab, few, stages);
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
        if (c.chunks > 1) {
            config.num_virtual_stages_per_pipeline_rank = c.chunks;
            config.overlap_p2p_comm_warmup_flush = given_.overlap_p2p_comm_warmup_flush;
        }
        config.account_for_embedding_in_pipeline_split = c.split.embedding;
        config.account_for_loss_in_pipeline_split = c.split.loss;
        config.decoder_first_pipeline_num_layers = c.split.first;
        config.decoder_last_pipeline_num_layers = c.split.last;
        using R = Candidate::Recompute;
        config.recompute_granularity = c.recompute == R::none ? "" : c.recompute == R::full ? "full" : "selective";
        config.recompute_method = c.recompute == R::full ? "uniform" : "";
        config.recompute_num_layers = c.recompute == R::full ? 1 : 0;
        validate_and_derive(config, request_.gpus);
        return config;
    }

    RunConfig with_vocabulary(RunConfig config) const {
        config.padded_vocab_size =
            pad_vocab_size(vocab_, config.make_vocab_size_divisible_by, config.tensor_model_parallel_size);
        return config;
    }

    double seconds_of(const Candidate& c, const LayoutChoice& choice) const {
        const double flops = flops_per_step(flops_formula_of(choice.config.log_format),
                                            flops_shape(choice.config, choice.config.padded_vocab_size), choice.batch);
        const bool full = c.recompute == Candidate::Recompute::full;
        const double compute = flops * (full ? 4.0 / 3 : 1) / (static_cast<double>(request_.gpus) * request_.sustained);
        const auto& sent = choice.plan.fullest().sent;
        const auto time_of = [&](const char* what, bool within) {
            const auto at = sent.find(what);
            return at == sent.end() ? 0 : at->second.bytes / (within ? request_.within_node : request_.between_nodes);
        };
        const double busy = compute + time_of("tensor", true) + 0.5 * time_of("context", within_node(c.tp * c.cp));
        return busy / (1 - choice.plan.bubble) + 0.5 * time_of("data", one_node()) + time_of("pipeline", one_node());
    }

    RunConfig given_, base_;
    SearchRequest request_;
    std::int64_t vocab_ = 0;  ///< without padding
    SampleWork work_;
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
    c.overlap_p2p_comm_warmup_flush = false;
    c.account_for_embedding_in_pipeline_split = c.account_for_loss_in_pipeline_split = false;
    c.recompute_granularity.clear();
    c.recompute_method.clear();
    c.recompute_num_layers = 0;
    c.recompute_modules.clear();
    return c;
}

std::vector<LayoutChoice> search_layouts(const RunConfig& config, const SearchRequest& request) {
    return Search(config, request).run();
}

namespace {

/// Of each stage, as "7 8x14 7".
std::string layers_text(const RunConfig& config) {
    const std::vector<std::int64_t> layers = plan_layers(layer_plan_request(config)).layers_per_stage();
    std::string text;
    for (std::size_t i = 0; i < layers.size();) {
        std::size_t alike = 1;
        while (i + alike < layers.size() && layers[i + alike] == layers[i]) ++alike;
        text += cat(i == 0 ? "" : " ", layers[i], alike > 1 ? cat("x", alike) : "");
        i += alike;
    }
    return text;
}

}  // namespace

std::string layouts_text(const SearchRequest& request, const std::vector<LayoutChoice>& choices) {
    char row[256];
    std::string out =
        cat("layouts for ", request.gpus, " GPUs of ", request.memory_gib, " GiB, best first\n",
            "  tensor pipeline context  data  micro-batch   batch chunks  recompute      memory  bubble %  "
            "step s  tokens/s/GPU  layers of stages\n");
    for (const LayoutChoice& choice : choices) {
        const RunConfig& c = choice.config;
        std::snprintf(row, sizeof row,
                      "  %6lld %8lld %7lld %5lld %12lld %7lld %6lld  %-9s  %10s  %8.1f  %6.2f  %12.0f  ",
                      static_cast<long long>(c.tensor_model_parallel_size),
                      static_cast<long long>(c.pipeline_model_parallel_size),
                      static_cast<long long>(c.context_parallel_size), static_cast<long long>(c.data_parallel_size),
                      static_cast<long long>(c.micro_batch_size), static_cast<long long>(choice.batch),
                      static_cast<long long>(c.virtual_pipeline_model_parallel_size.value_or(1)),
                      c.recompute_granularity.empty() ? "none" : c.recompute_granularity.c_str(),
                      size_text(choice.plan.fullest().total()).c_str(), 100 * choice.plan.bubble, choice.seconds,
                      choice.tokens_per_second_per_gpu);
        out += row + layers_text(c) + "\n";
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
