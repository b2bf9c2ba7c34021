#include <cmath>

#include "optim/update_rule.h"

namespace tera {
namespace {

class Adam final : public UpdateRule {
  public:
    explicit Adam(const AdamConfig& config) : config_(config) {}

    std::vector<std::string> states() const override { return {"exp_avg", "exp_avg_sq"}; }

    void begin_step(std::int64_t t) override {
        // Powers by exp and log: 1 - βᵗ to the last digits also for small t and β near 1.
        correct1_ = 1 / -std::expm1(static_cast<double>(t) * std::log(config_.beta1));
        correct2_ = 1 / -std::expm1(static_cast<double>(t) * std::log(config_.beta2));
    }
    void update(const UpdateBlock<float>& block) const override { choose(block); }
    void update(const UpdateBlock<double>& block) const override { choose(block); }
    RuleNumbers numbers() const override {
        return {.kind = config_.decoupled_weight_decay ? RuleNumbers::Kind::adam : RuleNumbers::Kind::adam_l2,
                .beta1 = config_.beta1,
                .beta2 = config_.beta2,
                .eps = config_.eps,
                .correct1 = correct1_,
                .correct2 = correct2_};
    }

  private:
    template <class T>
    void choose(const UpdateBlock<T>& block) const {
        config_.decoupled_weight_decay ? run<true>(block) : run<false>(block);
    }

    template <bool decoupled, class T>
    void run(const UpdateBlock<T>& block) const {
        const T b1 = static_cast<T>(config_.beta1), b2 = static_cast<T>(config_.beta2);
        const T c1 = static_cast<T>(1 - config_.beta1), c2 = static_cast<T>(1 - config_.beta2);
        const T correct1 = static_cast<T>(correct1_), correct2 = static_cast<T>(correct2_);
        const T eps = static_cast<T>(config_.eps), lr = static_cast<T>(block.lr);
        const T decay = static_cast<T>(block.weight_decay), factor = static_cast<T>(block.grad_factor);
        T* const w = block.weight;
        T* const m = block.state[0];
        T* const v = block.state[1];
        const T* const grad = block.grad;
#pragma omp simd
        for (std::int64_t i = 0; i < block.n; ++i) {
            T g = grad[i] * factor;
            if constexpr (!decoupled) g += decay * w[i];
            const T mean = b1 * m[i] + c1 * g;
            const T square = b2 * v[i] + c2 * g * g;
            m[i] = mean;
            v[i] = square;
            T change = mean * correct1 / (std::sqrt(square * correct2) + eps);
            if constexpr (decoupled) change += decay * w[i];
            w[i] -= lr * change;
        }
    }

    AdamConfig config_;
    double correct1_ = 1, correct2_ = 1;
};

}  // namespace

std::unique_ptr<UpdateRule> make_adam(const AdamConfig& config) { return std::make_unique<Adam>(config); }

}  // namespace tera
