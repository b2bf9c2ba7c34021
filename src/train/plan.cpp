#include "train/plan.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "config/fields.h"
#include "core/build_info.h"
#include "core/error.h"
#include "train/format_text.h"
#include "train/run_schedules.h"

namespace tera {
namespace {

/// Nothing for models that this version cannot build.
void count_layout(RunConfig config, RunPlan& plan) {
    if (config.kind != ModelKind::gpt || !uncounted_flag(config).empty()) return;
    config.padded_vocab_size = plan.padded_vocab_size;
    try {
        plan.layout = plan_layout(config, plan.vocab.size, plan.num_micro_batches);
    } catch (const UsageError& e) {
        plan.layout_missing = e.what();
    }
}

std::string why_not_runnable(const RunConfig& config) {
    try {
        require_runnable(config);
    } catch (const UsageError& reason) {
        return reason.what();
    }
    return "";
}

/// "0-17", or "0-1, 16-17" where a stage holds several chunks.
std::string range_text(const std::vector<LayerRange>& chunks) {
    std::string out;
    for (const LayerRange& chunk : chunks) {
        if (chunk.count == 0) continue;
        out += (out.empty() ? "" : ", ") + cat(chunk.first, "-", chunk.first + chunk.count - 1);
    }
    return out.empty() ? "none" : out;
}

}  // namespace

ParameterShape parameter_shape(const RunConfig& c, std::int64_t padded_vocab) {
    ParameterShape s;
    s.kind = c.kind == ModelKind::gpt    ? ParameterShape::Kind::decoder
             : c.kind == ModelKind::bert ? ParameterShape::Kind::bert
                                         : ParameterShape::Kind::t5;
    s.layers = c.kind == ModelKind::t5 ? c.decoder_num_layers : c.num_layers;
    s.encoder_layers = c.kind == ModelKind::t5 ? c.encoder_num_layers : 0;
    s.hidden = c.hidden_size;
    s.ffn = c.ffn_hidden_size;
    s.heads = c.num_attention_heads;
    s.kv_heads = c.num_query_groups;
    s.head_dim = c.kv_channels;
    s.vocab = padded_vocab;
    s.positions = c.position_embedding_type == "learned_absolute" ? c.max_position_embeddings : 0;
    s.relative_buckets = c.position_embedding_type == "relative" ? c.relative_attention_num_buckets : 0;
    s.norm_bias = c.normalization == "LayerNorm";
    s.gated = c.swiglu;
    s.activation_scalars = c.xielu || c.xiprelu ? 2 : c.xiprelup ? 3 : 0;
    s.linear_bias = c.add_bias_linear;
    s.qkv_bias = c.add_qkv_bias;
    s.qk_norm = c.qk_layernorm;
    s.attention_norm = c.attn_layernorm;
    s.mlp_norm = c.mlp_layernorm;
    s.final_norm = c.final_layernorm;
    s.post_norm = c.post_layer_norm;
    s.tied = !c.untie_embeddings_and_output_weights;
    s.binary_head = c.bert_binary_head;
    return s;
}

FlopsShape flops_shape(const RunConfig& c, std::int64_t padded_vocab) {
    FlopsShape s;
    s.layers = c.num_layers;
    s.hidden = c.hidden_size;
    s.ffn = c.ffn_hidden_size;
    s.heads = c.num_attention_heads;
    s.kv_heads = c.num_query_groups;
    s.head_dim = c.kv_channels;
    s.vocab = padded_vocab;
    s.sequence = c.seq_length;
    s.gated = c.swiglu;
    s.recompute = !c.recompute_granularity.empty();
    return s;
}

LayerPlanRequest layer_plan_request(const RunConfig& c) {
    LayerPlanRequest request;
    request.layers = c.kind == ModelKind::t5 ? c.decoder_num_layers : c.num_layers;
    request.stages = c.pipeline_model_parallel_size;
    request.chunks = c.virtual_pipeline_model_parallel_size.value_or(1);
    request.first_stage = c.decoder_first_pipeline_num_layers;
    request.last_stage = c.decoder_last_pipeline_num_layers;
    request.count_embedding = c.account_for_embedding_in_pipeline_split;
    request.count_loss = c.account_for_loss_in_pipeline_split;
    return request;
}

std::string uncounted_flag(const RunConfig& config) {
    for (const Field& field : fields()) {
        const bool layout = field.names[0].find("-parallel-size") != std::string::npos;
        const bool beside = field.group == "logging" || field.group == "data";
        if (field.status == FlagStatus::later && !layout && !beside && !is_default(config, field))
            return cat(field.flag(), " is not built yet: ", field.reason);
    }
    return "";
}

RunPlan make_plan(const RunConfig& config, const std::vector<std::int64_t>& at_iterations) {
    RunPlan plan;
    plan.vocab = find_vocab_size(config);
    plan.padded_vocab_size =
        pad_vocab_size(plan.vocab.size, config.make_vocab_size_divisible_by, config.tensor_model_parallel_size);
    plan.layers = plan_layers(layer_plan_request(config));
    plan.parameters = count_parameters(parameter_shape(config, plan.padded_vocab_size),
                                       config.tensor_model_parallel_size, plan.layers.layers_per_stage());
    plan.layers_per_stage = plan.layers.layers_per_stage();
    if (config.kind == ModelKind::t5) plan.layers_per_stage[0] += config.encoder_num_layers;

    const BatchSchedule batches = make_batch_schedule(config);
    const StepBatch full = batches.full();
    check_batches(config);
    plan.num_micro_batches = full.micro_batches;
    plan.train_iters = training_iterations(config);
    plan.flops_per_iteration = flops_per_step(flops_formula_of(config.log_format),
                                              flops_shape(config, plan.padded_vocab_size), full.running_batch);

    const bool scheduled = config.lr && plan.train_iters && *plan.train_iters > 0;
    if (!at_iterations.empty() && !scheduled)
        usage_error("--at-iterations needs --lr and a length of the run (--train-iters or --train-samples)");
    if (scheduled) {
        const LrSchedule schedule = make_lr_schedule(config);
        for (const std::int64_t iteration : at_iterations) {
            if (iteration < 0 || iteration > *plan.train_iters) {
                usage_error("--at-iterations: ", iteration, " is not an iteration of this run of ", *plan.train_iters);
            }
            const auto samples = static_cast<double>(batches.consumed_after(iteration));
            plan.learning_rate.push_back({iteration, schedule.learning_rate(samples)});
        }
    }
    count_layout(config, plan);
    plan.not_runnable = why_not_runnable(config);
    if (plan.not_runnable.empty()) plan.not_runnable = plan.layout_missing;
    return plan;
}

namespace {

/// " (messages 8.00 MiB, product library 64.00 MiB)": the buffers there are.
std::string buffers_text(const MemoryPlan& m) {
    std::string out;
    for (const auto& [what, bytes] : {std::pair{"messages", m.messages},
                                      {"batches", m.batches},
                                      {"tables", m.tables},
                                      {"product library", m.libraries},
                                      {"rounding", m.rounding}})
        if (bytes > 0) out += cat(out.empty() ? " (" : ", ", what, " ", size_text(bytes));
    return out.empty() ? out : out + ")";
}

std::string layout_text(const LayoutPlan& layout) {
    const bool cpu = layout.device == "CPU";
    std::string out =
        report_line("memory of a rank", cat("counted for ", cpu ? "the CPU" : layout.device,
                                            cpu && build_info().cuda ? " (--device cuda: for a GPU)" : ""));
    for (std::size_t stage = 0; stage < layout.stages.size(); ++stage) {
        const MemoryPlan& m = layout.stages[stage];
        out +=
            report_line(cat("  stage ", stage),
                        cat(size_text(m.total()), ": weights ", size_text(m.weights - m.gradients), ", gradients ",
                            size_text(m.gradients), ", main weights ", size_text(m.main_weights), ", optimizer state ",
                            size_text(m.optimizer - m.main_weights), ", activations ", size_text(m.activations),
                            ", scratch ", size_text(m.scratch), ", buffers ", size_text(m.buffers()), buffers_text(m)));
    }
    if (layout.libraries_about > 0)
        out += report_line("  on top of it", cat("about ", size_text(layout.libraries_about),
                                                 " for CUDA's context and the libraries' own buffers"));
    const MemoryPlan& fullest = layout.fullest();
    if (!fullest.sent.empty()) out += report_line("sent in a step", "by a rank of the fullest stage");
    for (const auto& [what, traffic] : fullest.sent)
        if (traffic.calls > 0)
            out += report_line("  " + what, cat(size_text(traffic.bytes), " in ", grouped(traffic.calls),
                                                traffic.calls == 1 ? " call" : " calls"));
    if (layout.stages.size() > 1)
        out += report_line("pipeline bubble", cat(format_text("%.1f %%", 100 * layout.bubble), " of a step"));
    return out;
}

nlohmann::json layout_json(const LayoutPlan& layout) {
    nlohmann::json stages = nlohmann::json::array();
    for (const MemoryPlan& m : layout.stages) {
        nlohmann::json sent = nlohmann::json::object();
        for (const auto& [what, traffic] : m.sent) sent[what] = {{"bytes", traffic.bytes}, {"calls", traffic.calls}};
        stages.push_back({{"total", m.total()},
                          {"weights", m.weights - m.gradients},
                          {"gradients", m.gradients},
                          {"main_weights", m.main_weights},
                          {"optimizer_state", m.optimizer - m.main_weights},
                          {"activations", m.activations},
                          {"scratch", m.scratch},
                          {"buffers", m.buffers()},
                          {"buffers_by_name",
                           {{"messages", m.messages},
                            {"batches", m.batches},
                            {"tables", m.tables},
                            {"product_library", m.libraries},
                            {"rounding", m.rounding}}},
                          {"sent_per_step", std::move(sent)}});
    }
    return {{"device", layout.device},
            {"stages", std::move(stages)},
            {"libraries_about", layout.libraries_about},
            {"pipeline_bubble", layout.bubble}};
}

}  // namespace

std::string plan_text(const RunConfig& c, const RunPlan& plan) {
    std::string out;
    for (const std::string& notice : c.notices) out += "note: " + notice + "\n";
    out += report_line("ranks", cat(c.world_size, " = tensor ", c.tensor_model_parallel_size, " * pipeline ",
                                    c.pipeline_model_parallel_size, " * context ", c.context_parallel_size, " * data ",
                                    c.data_parallel_size));
    out += report_line("vocabulary", cat(grouped(plan.vocab.size), " (", plan.vocab.source, "), padded to ",
                                         grouped(plan.padded_vocab_size)));
    out += report_line("parameters", grouped(plan.parameters.total));
    for (size_t stage = 0; stage < plan.parameters.per_rank.size(); ++stage) {
        out += report_line(
            cat("  stage ", stage),
            cat(plan.layers_per_stage[stage], " layers (",
                c.kind == ModelKind::t5 ? cat(c.encoder_num_layers, " encoder, ", c.decoder_num_layers, " decoder")
                                        : range_text(plan.layers.stages[stage]),
                "), ", grouped(plan.parameters.per_rank[stage][0]), " parameters on each of ",
                c.tensor_model_parallel_size, " tensor ranks"));
    }
    out += report_line("head dimension", cat(c.kv_channels, " (", c.num_attention_heads, " heads, ", c.num_query_groups,
                                             " key/value heads)"));
    out += report_line("MLP width", cat(c.ffn_hidden_size));
    out += report_line("global batch",
                       cat(c.global_batch_size, " = ", plan.num_micro_batches, " micro-batches of ", c.micro_batch_size,
                           " on each of ", c.data_parallel_size, " data-parallel ranks"));
    out += report_line("iterations", plan.train_iters ? grouped(*plan.train_iters) : "not given");
    out += report_line("FLOPs per iteration",
                       cat(format_text("%.6E", plan.flops_per_iteration), " (",
                           format_text("%.6E", plan.flops_per_iteration / static_cast<double>(c.world_size)),
                           " per rank; formula of --log-format ", c.log_format, ")"));
    if (plan.layout) out += layout_text(*plan.layout);
    if (!plan.layout_missing.empty()) out += report_line("memory of a rank", "not counted: " + plan.layout_missing);
    for (const RateAtIteration& at : plan.learning_rate) {
        out += report_line("learning rate", cat(format_text("%.6E", at.learning_rate), " at iteration ", at.iteration));
    }
    if (!plan.not_runnable.empty()) out += report_line("not runnable yet", plan.not_runnable);
    return out;
}

nlohmann::json plan_json(const RunConfig& c, const RunPlan& plan) {
    nlohmann::json out = {
        {"parameters", plan.parameters.total},
        {"parameters_per_rank", plan.parameters.per_rank},
        {"vocab_size", plan.vocab.size},
        {"vocab_size_source", plan.vocab.source},
        {"padded_vocab_size", plan.padded_vocab_size},
        {"world_size", c.world_size},
        {"data_parallel_size", c.data_parallel_size},
        {"global_batch_size", c.global_batch_size},
        {"num_micro_batches", plan.num_micro_batches},
        {"train_iters", nullptr},
        {"layers_per_stage", plan.layers_per_stage},
        {"flops_per_iteration", plan.flops_per_iteration},
        {"head_dim", c.kv_channels},
        {"ffn_hidden_size", c.ffn_hidden_size},
        {"learning_rate", nlohmann::json::object()},
        {"runnable", plan.not_runnable.empty()},
        {"notices", c.notices},
    };
    if (plan.train_iters) out["train_iters"] = *plan.train_iters;
    // As an integer while it is one exactly: above 2^53 the formula's value is rounded to a double anyway.
    if (plan.flops_per_iteration < 0x1p63 && plan.flops_per_iteration == std::floor(plan.flops_per_iteration)) {
        out["flops_per_iteration"] = static_cast<std::int64_t>(plan.flops_per_iteration);
    }
    for (const RateAtIteration& at : plan.learning_rate)
        out["learning_rate"][std::to_string(at.iteration)] = at.learning_rate;
    if (plan.layout) out["layout"] = layout_json(*plan.layout);
    if (!plan.not_runnable.empty()) out["not_runnable_because"] = plan.not_runnable;
    return out;
}

}  // namespace tera
