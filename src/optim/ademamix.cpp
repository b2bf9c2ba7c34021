#include <cmath>

#include "optim/update_rule.h"

namespace tera {
namespace {

// Half-life of an average with factor β, in steps; the small number keeps ln away from 0 for β = 1.
double half_life(double beta) { return std::log(0.5) / std::log(beta + 1e-8) - 1; }
double from_half_life(double steps) { return std::pow(0.5, 1 / (steps + 1)); }

class AdEmaMix final : public UpdateRule {
  public:
    explicit AdEmaMix(const AdEmaMixConfig& config) : config_(config) {}

    std::vector<std::string> states() const override { return {"exp_avg_fast", "exp_avg_slow", "exp_avg_sq"}; }

    void begin_step(std::int64_t t) override {
        correct1_ = 1 / -std::expm1(static_cast<double>(t) * std::log(config_.beta1));
        correct2_ = 1 / std::sqrt(-std::expm1(static_cast<double>(t) * std::log(config_.beta2)));
        alpha_ = config_.alpha_at(t);
        beta3_ = config_.beta3_at(t);
    }
    void update(const UpdateBlock<float>& block) const override { run(block); }
    void update(const UpdateBlock<double>& block) const override { run(block); }
    RuleNumbers numbers() const override {
        return {.kind = RuleNumbers::Kind::ademamix,
                .beta1 = config_.beta1,
                .beta2 = config_.beta2,
                .beta3 = beta3_,
                .eps = config_.eps,
                .alpha = alpha_,
                .correct1 = correct1_,
                .correct2 = correct2_};
    }

  private:
    template <class T>
    void run(const UpdateBlock<T>& block) const {
        const T b1 = static_cast<T>(config_.beta1), b2 = static_cast<T>(config_.beta2), b3 = static_cast<T>(beta3_);
        const T c1 = static_cast<T>(1 - config_.beta1), c2 = static_cast<T>(1 - config_.beta2);
        const T c3 = static_cast<T>(1 - beta3_), alpha = static_cast<T>(alpha_);
        const T correct1 = static_cast<T>(correct1_), correct2 = static_cast<T>(correct2_);
        const T eps = static_cast<T>(config_.eps), lr = static_cast<T>(block.lr);
        const T decay = static_cast<T>(block.weight_decay), factor = static_cast<T>(block.grad_factor);
        T* const w = block.weight;
        T* const fast = block.state[0];
        T* const slow = block.state[1];
        T* const v = block.state[2];
        const T* const grad = block.grad;
#pragma omp simd
        for (std::int64_t i = 0; i < block.n; ++i) {
            const T g = grad[i] * factor;
            const T near = b1 * fast[i] + c1 * g;
            const T far = b3 * slow[i] + c3 * g;
            const T square = b2 * v[i] + c2 * g * g;
            fast[i] = near;
            slow[i] = far;
            v[i] = square;
            w[i] -= lr * ((near * correct1 + alpha * far) / (std::sqrt(square) * correct2 + eps) + decay * w[i]);
        }
    }

    AdEmaMixConfig config_;
    double correct1_ = 1, correct2_ = 1, alpha_ = 0, beta3_ = 0;
};

}  // namespace

double AdEmaMixConfig::alpha_at(std::int64_t t) const {
    return t < alpha_warmup ? alpha * static_cast<double>(t) / static_cast<double>(alpha_warmup) : alpha;
}

double AdEmaMixConfig::beta3_at(std::int64_t t) const {
    if (t >= beta3_warmup) return beta3;
    const double part = static_cast<double>(t) / static_cast<double>(beta3_warmup);
    return from_half_life((1 - part) * half_life(beta1) + part * half_life(beta3));
}

std::unique_ptr<UpdateRule> make_ademamix(const AdEmaMixConfig& config) { return std::make_unique<AdEmaMix>(config); }

}  // namespace tera
