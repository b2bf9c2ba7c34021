// Loss scaling for fp16: the objective is multiplied by the scale before backward, so that small gradients survive in
// half precision, and the gradients are divided by it before they are used.
//
// Dynamic:  overflow       good = 0, patience -= 1; if patience ≤ 0: scale = max(scale/2, min)
//           no overflow    good += 1; at good = window: good = 0, patience = hysteresis, scale = 2·scale
// Patience is refilled by growth only, so after the first halving every further overflow halves again at once. There is
// no upper bound. The scale is an fp32 number.
#pragma once

#include <cstdint>

namespace tera {

class LossScaler {
  public:
    struct Dynamic {
        double initial = 4294967296.0;  ///< 2^32
        double minimum = 1;
        std::int64_t window = 1000;   ///< overflow-free steps before the scale doubles
        std::int64_t hysteresis = 2;  ///< overflows before it is halved
    };
    struct State {
        double scale = 1;
        std::int64_t good = 0, patience = 0;
        bool operator==(const State&) const = default;
    };

    explicit LossScaler(double constant_scale);
    explicit LossScaler(const Dynamic& dynamic);

    bool dynamic() const { return is_dynamic_; }
    double scale() const { return state_.scale; }
    /// No overflow can lower it further.
    bool at_minimum() const;
    /// 1/scale taken in double, then rounded to fp32.
    double inverse() const { return static_cast<float>(1.0 / state_.scale); }

    /// After every step whose gradients were looked at.
    void update(bool overflow);

    const State& state() const { return state_; }
    void set_state(const State& state);

  private:
    bool is_dynamic_;
    Dynamic settings_;
    State state_;
};

}  // namespace tera
