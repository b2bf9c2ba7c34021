// What the numbers of the training flags can be, one by one; how they must fit together is in validate.cpp.
#include "config/ranges.h"

#include <cmath>
#include <limits>
#include <map>

#include "config/fields.h"
#include "core/error.h"

namespace tera {
namespace {

constexpr double no_end = std::numeric_limits<double>::max();
constexpr double tiniest = std::numeric_limits<double>::denorm_min();  // above 0
constexpr double smallest_f32 = std::numeric_limits<float>::min(), largest_f32 = std::numeric_limits<float>::max();
constexpr double below_one = 1 - std::numeric_limits<double>::epsilon() / 2;
constexpr double most_threads = 4096;  // the bound of preprocess --workers too

struct Range {
    double low, high;  // both included
    const char* text;
    std::vector<const char*> flags;
};

const std::vector<Range>& ranges() {
    static const std::vector<Range> list = {
        {1,
         no_end,
         "must be at least 1",
         {"num-layers",
          "encoder-num-layers",
          "decoder-num-layers",
          "hidden-size",
          "ffn-hidden-size",
          "num-attention-heads",
          "kv-channels",
          "num-query-groups",
          "max-position-embeddings",
          "make-vocab-size-divisible-by",
          "seq-length",
          "encoder-seq-length",
          "decoder-seq-length",
          "relative-attention-num-buckets",
          "relative-attention-max-distance",
          "rotary-base",
          "rotary-seq-len-interpolation-factor",
          "vocab-size",
          "micro-batch-size",
          "global-batch-size",
          "rampup-batch-size",
          "train-samples",
          "exit-interval",
          "exit-duration-in-mins",
          "eval-interval",
          "save-interval",
          "log-interval",
          "tensorboard-log-interval",
          "lr-decay-iters",
          "lr-decay-samples",
          "loss-scale-window",
          "hysteresis",
          "goldfish-k",
          "goldfish-h",
          "world-size",
          "tensor-model-parallel-size",
          "pipeline-model-parallel-size",
          "context-parallel-size",
          "expert-model-parallel-size",
          "num-layers-per-virtual-pipeline-stage",
          "num-virtual-stages-per-pipeline-rank",
          "microbatch-group-size-per-virtual-pipeline-stage",
          "ddp-bucket-size",
          "distributed-timeout-minutes"}},
        {1, 65535, "must be from 1 to 65535", {"master-port"}},
        {0,
         no_end,
         "must not be below 0",
         {"rank",
          "local-rank",
          "train-iters",
          "eval-iters",
          "iterations-to-skip",
          "seed",
          "lr-wsd-decay-iters",
          "lr-wsd-decay-samples",
          "lr-warmup-iters",
          "lr-warmup-samples",
          "ckpt-step",
          "keep-last",
          "keep-every",
          "recompute-num-layers",
          "decoder-first-pipeline-num-layers",
          "decoder-last-pipeline-num-layers",
          "wgrad-deferral-limit",
          "vocab-extra-ids",
          "tiktoken-num-special-tokens",
          "profile-step-start",
          "profile-step-end",
          "profile-ranks"}},
        {0,
         no_end,
         "must be a finite number, not below 0",
         {"lr", "min-lr", "lr-warmup-init", "decoupled-lr", "decoupled-min-lr", "weight-decay", "start-weight-decay",
          "end-weight-decay", "clip-grad", "adam-eps", "ademamix-alpha", "init-method-std"}},
        {tiniest, no_end, "must be a finite number above 0", {"norm-epsilon", "rope-scaling-factor"}},
        {smallest_f32,
         largest_f32,
         "must be a finite number above 0 that fp32 can hold",
         {"loss-scale", "initial-loss-scale", "min-loss-scale"}},
        {0,
         below_one,
         "must be at least 0 and less than 1",
         {"attention-dropout", "hidden-dropout", "adam-beta1", "adam-beta2", "ademamix-beta3", "sgd-momentum"}},
        {0, 1, "must be from 0 to 1", {"lr-warmup-fraction", "mask-prob", "short-seq-prob"}},
        {tiniest, 1, "must be above 0 and at most 1", {"rotary-percent"}},
        {0, most_threads, "must be from 0 to 4096", {"threads", "num-workers"}},
        {1, most_threads, "must be from 1 to 4096", {"num-dataset-builder-threads"}},
    };
    return list;
}

const Range* range_of(const Field& field) {
    static const auto by_name = [] {
        std::map<std::string, const Range*> map;
        for (const Range& range : ranges()) {
            for (const char* flag : range.flags) map[flag] = &range;
        }
        return map;
    }();
    static const Range finite{-no_end, no_end, "must be a finite number", {}};
    const auto it = by_name.find(field.names[0]);
    if (it != by_name.end()) return it->second;
    return field.type == ArgType::real ? &finite : nullptr;
}

void append(std::vector<double>& out, double value) { out.push_back(value); }
void append(std::vector<double>& out, int64_t value) { out.push_back(static_cast<double>(value)); }
template <class T>
void append(std::vector<double>& out, const std::optional<T>& value) {
    if (value) append(out, *value);
}
void append(std::vector<double>& out, const std::vector<int64_t>& values) {
    for (const int64_t value : values) append(out, value);
}

std::vector<double> numbers_of(const RunConfig& config, const Field& field) {
    std::vector<double> out;
    std::visit(
        [&](auto member) {
            if constexpr (requires { append(out, config.*member); }) append(out, config.*member);
        },
        field.member);
    return out;
}

}  // namespace

void check_ranges(const RunConfig& config) {
    for (const Field& field : fields()) {
        const Range* range = range_of(field);
        // Sizes that are 0 until they are given or derived are judged where they are needed.
        const bool set = config.given.count(field.dest) != 0 || !is_default(config, field);
        if (range == nullptr || !set) continue;
        for (const double value : numbers_of(config, field)) {
            if (value >= range->low && value <= range->high) continue;
            usage_error("--", field.names[0], " ", python_text(config, field), ": ", range->text);
        }
    }
}

}  // namespace tera
