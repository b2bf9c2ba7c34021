#include "train/verify.h"

#include <algorithm>
#include <cmath>

#include "comm/nccl_comm.h"
#include "core/error.h"
#include "train/format_text.h"
#include "train/model_from_flags.h"
#include "train/plan.h"
#include "train/run_schedules.h"
#include "train/training_parts.h"
#include "train/vocab_size.h"

namespace tera {
namespace {

/// The same kinds of layers at the smallest size that can be shared out alike: two of what a rank has several of.
ModelConfig small_model(ModelConfig c, std::int64_t tp, std::int64_t positions) {
    const auto few = [](std::int64_t n) { return std::min<std::int64_t>(n, 2); };
    if (c.kv_heads < tp) {  // several ranks have the same
        c.heads = tp * few(c.heads / tp);
    } else {
        const std::int64_t queries_per_key = few(c.heads / c.kv_heads);
        c.kv_heads = tp * few(c.kv_heads / tp);
        c.heads = c.kv_heads * queries_per_key;
    }
    c.head_dim = 8;
    if (c.rope.percent < 1) c.rope.percent = 0.5;  // a part of eight dimensions
    c.hidden = 16;
    c.ffn = 4 * tp;
    c.vocab = 8 * tp;
    c.true_vocab = c.vocab - 3;
    c.max_positions = positions;
    c.init_std = 0.2;
    return c;
}

/// Micro-batches of a step on each rank: as many as the flags give, or fewer that fill the pipeline and its last group
/// alike. UsageError if they cannot be shared out.
std::int64_t micro_batches_for(const RunConfig& config, const ParityLayout& layout) {
    const std::int64_t group = layout.group > 0 ? layout.group : layout.mesh.pp;
    if (config.given.count("global_batch_size") == 0) return 2 * group;
    check_batches(config);
    const std::int64_t asked = make_batch_schedule(config).full().micro_batches;
    const std::int64_t most = std::max<std::int64_t>(8, 3 * group);
    if (asked <= most) return asked;
    return asked - (asked - most + group - 1) / group * group;
}

/// 0 if nothing says it: no tokenizer is needed here.
std::int64_t vocabulary_of(const RunConfig& config) {
    try {
        return find_vocab_size(config).size;
    } catch (const UsageError&) {
        return 0;
    }
}

/// "width 4096 to 16, ..." of what differs.
std::string smaller_text(const RunConfig& config, const ModelConfig& asked, const VerifyPlan& plan) {
    const ParityTraining& t = plan.training;
    const std::int64_t micro_batches = make_batch_schedule(config).full().micro_batches;
    std::string out;
    const auto note = [&](const char* what, std::int64_t from, std::int64_t to) {
        if (from > to) out += (out.empty() ? "" : ", ") + cat(what, " ", from, " to ", to);
    };
    note("width", asked.hidden, t.model.hidden);
    note("MLP width", asked.ffn, t.model.ffn);
    note("heads", asked.heads, t.model.heads);
    note("key/value heads", asked.kv_heads, t.model.kv_heads);
    note("head dimension", asked.head_dim, t.model.head_dim);
    note("vocabulary", vocabulary_of(config), t.model.vocab);
    note("sequence", config.seq_length, t.S);
    note("micro-batch", config.micro_batch_size, t.B);
    note("micro-batches", micro_batches, t.micro_batches / plan.layout.mesh.dp);
    return out;
}

double largest(const WholeTensors& tensors) {
    double most = 0;
    for (const auto& [name, values] : tensors.all())
        for (const double x : values) most = std::max(most, std::abs(x));
    return most;
}

class Comparison {
  public:
    explicit Comparison(double bound) : bound_(bound) {}

    void tensors(const char* what, const WholeTensors& many, const WholeTensors& one) {
        const double most = largest(one);
        double worst = 0;
        std::string where = "none";
        for (const auto& [name, difference] : many.differing())
            differs(cat("two ranks hold different ", what, " of ", name, ", by ", difference));
        for (const auto& [name, wanted] : one.all()) {
            const auto found = many.all().find(name);
            if (found == many.all().end()) {
                differs(cat("no rank has ", what, " of ", name));
                continue;
            }
            double size = 0;
            for (const double x : wanted) size = std::max(size, std::abs(x));
            const double relative = largest_difference(found->second, wanted);
            // One that is zero but for rounding (the gradient by a bias of all keys) has no digits to compare.
            if (size <= 1e-10 * most && relative * size <= 1e-14 * most) continue;
            if (!(relative <= worst)) worst = relative, where = name;
            if (!(relative <= bound_)) differs(cat(what, " of ", name, " differ by ", relative, " of the largest"));
        }
        lines_.push_back(format_text("  %-24s %4zu tensors, largest difference %.1e (%s)", what, one.all().size(),
                                     worst, where.c_str()));
    }
    void number(const char* what, double many, double one) {
        const double relative = std::abs(many - one) / std::max(std::abs(one), 1e-300);
        lines_.push_back(format_text("  %-24s %.12g and %.12g, difference %.1e", what, many, one, relative));
        if (!(relative <= bound_)) differs(cat(what, " is ", many, ", on one rank ", one));
    }
    void differs(const std::string& what) {
        if (first_.empty()) first_ = what;
    }
    VerifyReport report() { return {std::move(lines_), std::move(first_)}; }

  private:
    double bound_;
    std::vector<std::string> lines_;
    std::string first_;
};

}  // namespace

VerifyPlan plan_verification(const RunConfig& config) {
    if (config.kind != ModelKind::gpt) usage_error("verify is built for gpt models only");
    (void)plan_layers(layer_plan_request(config));  // says what cannot be before ranks start
    VerifyPlan plan;
    ParityLayout& layout = plan.layout;
    layout.mesh = mesh_shape_from(config);
    layout.cp_comm = cp_comm_from(config);
    layout.sequence_parallel = config.sequence_parallel;
    layout.distributed_optimizer = config.use_distributed_optimizer;
    layout.overlap = config.overlap_grad_reduce;
    layout.overlap_gather = config.overlap_param_gather;
    layout.gather_in_update = config.overlap_param_gather_with_optimizer_step;
    layout.tp_overlap = config.async_tensor_model_parallel_allreduce;
    layout.chunks = static_cast<int>(config.virtual_pipeline_model_parallel_size.value_or(1));
    layout.first_stage_layers = config.decoder_first_pipeline_num_layers;
    layout.last_stage_layers = config.decoder_last_pipeline_num_layers;
    layout.count_embedding = config.account_for_embedding_in_pipeline_split;
    layout.count_loss = config.account_for_loss_in_pipeline_split;
    layout.recompute = recompute_from(config);
    layout.deferral = deferral_from(config);
    layout.ahead = receive_ahead_from(config);
    layout.group = config.microbatch_group_size_per_vp_stage.value_or(0);
    ParityTraining& training = plan.training;
    const std::int64_t tp = layout.mesh.tp, cp = layout.mesh.cp;
    training.S = 4 * cp * tp;
    training.B = std::min<std::int64_t>(config.micro_batch_size, 2);
    training.micro_batches = static_cast<int>(micro_batches_for(config, layout) * layout.mesh.dp);
    training.documents = config.reset_attention_mask;
    training.per_token_loss = config.calculate_per_token_loss;
    training.clip = config.clip_grad;
    const ModelConfig asked = model_config_from(config, 0, 0);
    training.model = small_model(asked, tp, training.S);
    plan.smaller = smaller_text(config, asked, plan);
    return plan;
}

namespace {

VerifyReport compare(const ParityRecord& many, const ParityRecord& one, double bound) {
    Comparison comparison(bound);
    if (!many.agreed) comparison.differs("ranks have seen different losses or gradient norms");
    comparison.tensors("gradients", many.grads, one.grads);
    for (std::size_t i = 0; i < one.steps.size(); ++i) {
        comparison.number(cat("loss of step ", i + 1).c_str(), many.steps[i].mean_loss(), one.steps[i].mean_loss());
        comparison.number(cat("grad norm of step ", i + 1).c_str(), many.steps[i].grad_norm.value_or(0),
                          one.steps[i].grad_norm.value_or(0));
    }
    comparison.tensors("weights after the steps", many.weights, one.weights);
    comparison.number("evaluation", many.evaluation.loss, one.evaluation.loss);
    return comparison.report();
}

}  // namespace

VerifyReport verify_layout(const VerifyPlan& plan, double bound) {
    ParityRecord one, many;
    train_on_threads(plan.training, {}, one);
    train_on_threads(plan.training, plan.layout, many);
    return compare(many, one, bound);
}

VerifyReport verify_layout(const VerifyPlan& plan, Comm& world, const Engine& engine, Progress* progress,
                           double bound) {
    ParityRecord one, many;
    const bool gpu = engine.device() != Device::cpu;
    const std::unique_ptr<Comm> gpu_world = gpu ? make_nccl_comm(world, engine, progress) : nullptr;
    try {
        train_rank(plan.training, plan.layout, gpu ? *gpu_world : world, engine, many);
    } catch (...) {
        if (gpu) gpu_world->abandon();  // else the GPU waits for ranks that will not come
        throw;
    }
    many.gather(world);
    if (world.rank() != 0) return {};
    train_rank(plan.training, {}, *make_self_comm(), engine, one);
    return compare(many, one, bound);
}

}  // namespace tera
