#include "optim/loss_scaler.h"

#include <algorithm>

namespace tera {
namespace {

double as_fp32(double x) { return static_cast<double>(static_cast<float>(x)); }

}  // namespace

LossScaler::LossScaler(double constant_scale) : is_dynamic_(false), state_{as_fp32(constant_scale), 0, 0} {}

LossScaler::LossScaler(const Dynamic& dynamic)
    : is_dynamic_(true), settings_(dynamic), state_{as_fp32(dynamic.initial), 0, dynamic.hysteresis} {}

bool LossScaler::at_minimum() const { return is_dynamic_ && state_.scale <= as_fp32(settings_.minimum); }

void LossScaler::update(bool overflow) {
    if (!is_dynamic_) return;
    if (overflow) {
        state_.good = 0;
        state_.patience -= 1;
        if (state_.patience <= 0) state_.scale = std::max(as_fp32(state_.scale * 0.5), as_fp32(settings_.minimum));
        return;
    }
    state_.good += 1;
    if (state_.good == settings_.window) {
        state_.good = 0;
        state_.patience = settings_.hysteresis;
        state_.scale = as_fp32(state_.scale * 2);
    }
}

void LossScaler::set_state(const State& state) {
    if (is_dynamic_) state_ = state;
}

}  // namespace tera
