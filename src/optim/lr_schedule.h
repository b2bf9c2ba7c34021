// Learning rate and weight decay as functions of the number of samples n seen by successful steps.
//
//   n <= warmup (> 0)     init + (max - init) * n / warmup
//   constant              max
//   n > decay             min
//   inverse-square-root   max(min, max * sqrt(max(warmup, 1)) / sqrt(max(n, 1)))
//   otherwise             min + c * (max - min),   r = (n - warmup) / (decay - warmup)
//     linear              c = 1 - r
//     cosine              c = (cos(pi r) + 1) / 2
//     WSD                 c = 1 until n = decay - wsd, then with s = (n - (decay - wsd)) / wsd:
//                         linear 1 - s · cosine (cos(pi s) + 1) / 2 · exponential 2 * 0.5^s - 1 · minus_sqrt 1 -
//                         sqrt(s)
//
//   weight decay          start + c * (end - start) until n = wd_steps, then end;  r = n / wd_steps
//                         linear c = r · cosine c = (cos(pi (1 - r)) + 1) / 2 · constant: start = end
//
// The first step uses n = 0, so with warm-up its rate is `init`; the rate logged for an iteration is the one after n
// has grown by that iteration's batch. A skipped step (overflow) does not advance n.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tera {

enum class LrDecay : std::uint8_t { constant, linear, cosine, inverse_square_root, wsd };
enum class WsdDecay : std::uint8_t { exponential, linear, cosine, minus_sqrt };
enum class WdGrowth : std::uint8_t { constant, linear, cosine };

// Names are those of the flags: "inverse-square-root", "WSD", "minus_sqrt" (also "1-sqrt"), ... UsageError otherwise.
LrDecay parse_lr_decay(const std::string& name);
WsdDecay parse_wsd_decay(const std::string& name);
WdGrowth parse_wd_growth(const std::string& name);
const char* name_of(LrDecay style);
const char* name_of(WsdDecay style);
const char* name_of(WdGrowth style);

/// All lengths in samples. The warm-up may be fractional: a share of the decay length.
struct LrSchedule {
    double init_lr = 0, max_lr = 0, min_lr = 0;
    double warmup_steps = 0;
    double decay_steps = 0;
    LrDecay style = LrDecay::linear;
    double wsd_steps = 0;
    WsdDecay wsd_style = WsdDecay::exponential;
    double start_wd = 0, end_wd = 0;
    double wd_steps = 0;
    WdGrowth wd_style = WdGrowth::constant;

    /// UsageError unless 0 <= min <= max, init <= max, warmup < decay and 0 <= start_wd <= end_wd.
    void check() const;

    double learning_rate(double n) const { return learning_rate(n, max_lr, min_lr); }
    /// For a group of parameters with a range of its own (--decoupled-lr): warm-up and lengths stay the same.
    double learning_rate(double n, double group_max, double group_min) const;
    double weight_decay(double n) const;
};

/// The schedule a resumed run follows. `use_checkpoint` takes the checkpoint's, `override_checkpoint` the command
/// line's; without either they must agree, and UsageError names the first value that differs.
LrSchedule schedule_at_resume(const LrSchedule& command_line, const LrSchedule& checkpoint, bool override_checkpoint,
                              bool use_checkpoint);

}  // namespace tera
