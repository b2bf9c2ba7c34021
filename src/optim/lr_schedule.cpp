#include "optim/lr_schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace tera {
namespace {

constexpr double pi = std::numbers::pi;
constexpr std::array lr_names = {"constant", "linear", "cosine", "inverse-square-root", "WSD"};
constexpr std::array wsd_names = {"exponential", "linear", "cosine", "minus_sqrt"};
constexpr std::array wd_names = {"constant", "linear", "cosine"};

template <class Enum, class Names>
Enum parse_name(const std::string& name, const Names& names, const char* flag) {
    std::string all;
    for (size_t i = 0; i < names.size(); ++i) {
        if (name == names[i]) return static_cast<Enum>(i);
        all += (i ? ", " : "") + std::string(names[i]);
    }
    usage_error(flag, ": '", name, "' is not one of ", all);
}

double wsd_coefficient(WsdDecay style, double s) {
    switch (style) {
        case WsdDecay::linear:
            return 1.0 - s;
        case WsdDecay::cosine:
            return 0.5 * (std::cos(pi * s) + 1.0);
        case WsdDecay::exponential:
            return 2.0 * std::pow(0.5, s) - 1.0;
        case WsdDecay::minus_sqrt:
            return 1.0 - std::sqrt(s);
    }
    return 0;
}

/// One value of two schedules that must agree.
void require_equal(double ours, double theirs, const char* what) {
    if (ours == theirs) return;
    usage_error("the learning-rate schedule differs from the checkpoint's: ", what, " is ", ours, " now and was ",
                theirs, "; choose --override-opt_param-scheduler (new) or --use-checkpoint-opt_param-scheduler (old)");
}

}  // namespace

LrDecay parse_lr_decay(const std::string& name) { return parse_name<LrDecay>(name, lr_names, "--lr-decay-style"); }
WsdDecay parse_wsd_decay(const std::string& name) {
    return parse_name<WsdDecay>(name == "1-sqrt" ? "minus_sqrt" : name, wsd_names, "--lr-wsd-decay-style");
}
WdGrowth parse_wd_growth(const std::string& name) {
    return parse_name<WdGrowth>(name, wd_names, "--weight-decay-incr-style");
}
const char* name_of(LrDecay style) { return lr_names[static_cast<size_t>(style)]; }
const char* name_of(WsdDecay style) { return wsd_names[static_cast<size_t>(style)]; }
const char* name_of(WdGrowth style) { return wd_names[static_cast<size_t>(style)]; }

void LrSchedule::check() const {
    if (!(min_lr >= 0)) usage_error("--min-lr must not be negative, but is ", min_lr);
    if (!(max_lr >= min_lr)) usage_error("--lr ", max_lr, " is less than --min-lr ", min_lr);
    if (!(init_lr <= max_lr)) usage_error("--lr-warmup-init ", init_lr, " is larger than --lr ", max_lr);
    if (!(decay_steps > 0))
        usage_error("the learning rate needs a positive decay length (--lr-decay-iters or --train-iters)");
    if (!(warmup_steps < decay_steps)) {
        usage_error("the warm-up (", warmup_steps, " samples) must be shorter than the decay (", decay_steps,
                    " samples, warm-up included); see --lr-warmup-... and --lr-decay-...");
    }
    if (style == LrDecay::wsd && !(wsd_steps >= 0 && wsd_steps <= decay_steps)) {
        usage_error("the final WSD decay (", wsd_steps, " samples) must lie within the decay length (", decay_steps,
                    " samples)");
    }
    if (!(start_wd >= 0 && end_wd >= start_wd)) {
        usage_error("weight decay must not be negative and not shrink: it starts at ", start_wd, " and ends at ",
                    end_wd);
    }
}

double LrSchedule::learning_rate(double n, double group_max, double group_min) const {
    if (warmup_steps > 0 && n <= warmup_steps) return init_lr + (group_max - init_lr) * n / warmup_steps;
    if (style == LrDecay::constant) return group_max;
    if (n > decay_steps) return group_min;
    if (style == LrDecay::inverse_square_root) {
        const double rate = group_max * std::sqrt(std::max(warmup_steps, 1.0)) / std::sqrt(std::max(n, 1.0));
        return std::max(group_min, rate);
    }
    const double ratio = (n - warmup_steps) / (decay_steps - warmup_steps);
    double coefficient = 1.0;
    if (style == LrDecay::linear) coefficient = 1.0 - ratio;
    if (style == LrDecay::cosine) coefficient = 0.5 * (std::cos(pi * ratio) + 1.0);
    if (style == LrDecay::wsd) {
        const double start = decay_steps - wsd_steps;
        if (n > start) coefficient = wsd_coefficient(wsd_style, (n - start) / wsd_steps);
    }
    return group_min + coefficient * (group_max - group_min);
}

double LrSchedule::weight_decay(double n) const {
    if (wd_style == WdGrowth::constant || n > wd_steps) return end_wd;
    const double ratio = wd_steps > 0 ? n / wd_steps : 1.0;
    const double coefficient = wd_style == WdGrowth::linear ? ratio : 0.5 * (std::cos(pi * (1.0 - ratio)) + 1.0);
    return start_wd + coefficient * (end_wd - start_wd);
}

LrSchedule schedule_at_resume(const LrSchedule& command_line, const LrSchedule& checkpoint, bool override_checkpoint,
                              bool use_checkpoint) {
    if (override_checkpoint) return command_line;
    if (use_checkpoint) return checkpoint;
    require_equal(command_line.max_lr, checkpoint.max_lr, "--lr");
    require_equal(command_line.min_lr, checkpoint.min_lr, "--min-lr");
    require_equal(command_line.init_lr, checkpoint.init_lr, "--lr-warmup-init");
    require_equal(command_line.warmup_steps, checkpoint.warmup_steps, "the warm-up in samples");
    if (command_line.style != checkpoint.style) {
        usage_error("the learning-rate schedule differs from the checkpoint's: --lr-decay-style is ",
                    name_of(command_line.style), " now and was ", name_of(checkpoint.style),
                    "; choose --override-opt_param-scheduler (new) or --use-checkpoint-opt_param-scheduler (old)");
    }
    // A constant rate and the inverse square root before its end do not know the decay length.
    if (command_line.style != LrDecay::constant)
        require_equal(command_line.decay_steps, checkpoint.decay_steps, "the decay length in samples");
    if (command_line.style == LrDecay::wsd) {
        require_equal(command_line.wsd_steps, checkpoint.wsd_steps, "the final WSD decay in samples");
        require_equal(static_cast<double>(command_line.wsd_style), static_cast<double>(checkpoint.wsd_style),
                      "--lr-wsd-decay-style");
    }
    require_equal(command_line.start_wd, checkpoint.start_wd, "the weight decay at the start");
    require_equal(command_line.end_wd, checkpoint.end_wd, "the weight decay at the end");
    if (command_line.wd_style != WdGrowth::constant)
        require_equal(command_line.wd_steps, checkpoint.wd_steps, "the length of the weight-decay growth in samples");
    return command_line;
}

}  // namespace tera
