// The names in the scheduler's record are those of Megatron's checkpoints.
#include "train/run_state.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "config/config_dump.h"
#include "io/json_file.h"

namespace tera {
namespace {

using nlohmann::json;

json schedule_json(const LrSchedule& s, std::int64_t samples) {
    return {{"num_steps", samples},
            {"init_lr", s.init_lr},
            {"max_lr", s.max_lr},
            {"min_lr", s.min_lr},
            {"lr_warmup_steps", s.warmup_steps},
            {"lr_decay_steps", s.decay_steps},
            {"lr_decay_style", name_of(s.style)},
            {"wsd_decay_steps", s.wsd_steps},
            {"lr_wsd_decay_style", name_of(s.wsd_style)},
            {"start_wd", s.start_wd},
            {"end_wd", s.end_wd},
            {"wd_incr_steps", s.wd_steps},
            {"wd_incr_style", name_of(s.wd_style)}};
}

const char* const scheduler_name = "state.json: scheduler";

}  // namespace

CheckpointState checkpoint_state_of(const RunState& state, const RunParts& parts) {
    CheckpointState out;
    out.iteration = state.iteration;
    out.consumed_train_samples = state.consumed_train_samples;
    out.consumed_valid_samples = state.consumed_valid_samples;
    out.skipped_train_samples = state.skipped_train_samples;
    out.floating_point_operations = state.floating_point_operations;
    out.seed = static_cast<std::uint64_t>(parts.config.seed);
    out.scheduler = schedule_json(parts.schedule, state.schedule_samples);
    if (parts.scaler && parts.scaler->dynamic()) {
        const LossScaler::State& s = parts.scaler->state();
        // A scale that has grown beyond fp32 is infinite, which JSON cannot say.
        out.loss_scaler = {{"scale", std::isfinite(s.scale) ? json(s.scale) : json(nullptr)},
                           {"growth_tracker", s.good},
                           {"hysteresis_tracker", s.patience}};
    }
    out.optimizer = {{"step", parts.optimizer_steps}};
    out.arguments = config_to_json(parts.config);
    return out;
}

RunState run_state_from(const CheckpointState& checkpoint) {
    RunState state;
    state.iteration = checkpoint.iteration;
    state.consumed_train_samples = checkpoint.consumed_train_samples;
    state.consumed_valid_samples = checkpoint.consumed_valid_samples;
    state.skipped_train_samples = checkpoint.skipped_train_samples;
    state.floating_point_operations = checkpoint.floating_point_operations;
    if (!checkpoint.scheduler.empty()) {
        state.schedule_samples = JsonObject(checkpoint.scheduler, scheduler_name).integer("num_steps");
    }
    return state;
}

LrSchedule schedule_from(const CheckpointState& checkpoint, const LrSchedule& otherwise) {
    if (checkpoint.scheduler.empty()) return otherwise;
    const JsonObject s(checkpoint.scheduler, scheduler_name);
    LrSchedule out;
    out.init_lr = s.real("init_lr");
    out.max_lr = s.real("max_lr");
    out.min_lr = s.real("min_lr");
    out.warmup_steps = s.real("lr_warmup_steps");
    out.decay_steps = s.real("lr_decay_steps");
    out.style = parse_lr_decay(s.text("lr_decay_style"));
    out.wsd_steps = s.real("wsd_decay_steps");
    out.wsd_style = parse_wsd_decay(s.text("lr_wsd_decay_style"));
    out.start_wd = s.real("start_wd");
    out.end_wd = s.real("end_wd");
    out.wd_steps = s.real("wd_incr_steps");
    out.wd_style = parse_wd_growth(s.text("wd_incr_style"));
    return out;
}

void restore_scaler(const CheckpointState& checkpoint, std::optional<LossScaler>& scaler) {
    if (!scaler || !scaler->dynamic() || checkpoint.loss_scaler.empty()) return;
    const JsonObject s(checkpoint.loss_scaler, "state.json: loss_scaler");
    scaler->set_state({s.real("scale", std::numeric_limits<double>::infinity()), s.integer("growth_tracker"),
                       s.integer("hysteresis_tracker")});
}

std::int64_t optimizer_steps_from(const CheckpointState& checkpoint) {
    if (checkpoint.optimizer.empty()) return 0;
    return JsonObject(checkpoint.optimizer, "state.json: optimizer").integer("step");
}

}  // namespace tera
