// An update rule: what one optimizer step does to one element. Rules know nothing of parameters, dtypes of the model,
// threads or checkpoints (optim/optimizer.h does all that); they are handed short runs of fp32 (or f64) numbers. The
// GPU has each formula in its kernel (optimizer.cu) and takes from the rule only its numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tera {

/// A run of elements of one parameter.
template <class T>
struct UpdateBlock {
    static constexpr int max_states = 3;
    std::int64_t n = 0;
    T* weight = nullptr;        ///< main weights
    const T* grad = nullptr;    ///< to be multiplied by grad_factor
    T* state[max_states] = {};  ///< in the order of UpdateRule::states()
    double lr = 0;
    double weight_decay = 0;  ///< already 0 for parameters that are not decayed
    double grad_factor = 1;   ///< undoes the loss scale and clips
};

/// A rule at one step as plain numbers; each kind uses those that its formula below names.
struct RuleNumbers {
    enum class Kind : std::uint8_t { adam, adam_l2, sgd, sgd_momentum, ademamix };
    Kind kind;
    double beta1 = 0, beta2 = 0, beta3 = 0, eps = 0, alpha = 0, momentum = 0;
    double correct1 = 1;  ///< Adam, AdEMAMix: 1/(1-β1ᵗ)
    double correct2 = 1;  ///< Adam: 1/(1-β2ᵗ);  AdEMAMix: 1/√(1-β2ᵗ)
};

class UpdateRule {
  public:
    virtual ~UpdateRule() = default;
    /// Names of the tensors kept per parameter, all of its shape and zero at first.
    virtual std::vector<std::string> states() const = 0;
    /// Called once before the updates of step t = 1, 2, ...
    virtual void begin_step(std::int64_t t) = 0;
    virtual void update(const UpdateBlock<float>& block) const = 0;
    virtual void update(const UpdateBlock<double>& block) const = 0;
    /// Of the step last begun.
    virtual RuleNumbers numbers() const = 0;
};

/// Adam. g ← grad_factor·grad, and with L2 instead of decoupled decay g ← g + wd·w
///   m ← β1 m + (1-β1) g       v ← β2 v + (1-β2) g²
///   w ← w - lr ( (m/(1-β1ᵗ)) / (√(v/(1-β2ᵗ)) + eps) + wd·w )       (wd term: decoupled only)
struct AdamConfig {
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
    bool decoupled_weight_decay = true;
};
std::unique_ptr<UpdateRule> make_adam(const AdamConfig& config);

/// SGD. g ← grad_factor·grad + wd·w;  buf ← μ buf + g (buf = 0 at first);  w ← w - lr·buf.  μ = 0 keeps no buffer.
std::unique_ptr<UpdateRule> make_sgd(double momentum);

/// AdEMAMix: Adam with a second, slow average of the gradient.
///   f ← β1 f + (1-β1) g       s ← β3(t) s + (1-β3(t)) g       v ← β2 v + (1-β2) g²
///   w ← w - lr ( (f/(1-β1ᵗ) + α(t) s) / (√v/√(1-β2ᵗ) + eps) + wd·w )
/// α(t) rises linearly to α over alpha_warmup steps; β3(t) goes from β1 to β3 over beta3_warmup steps, linearly in its
/// half-life. A warm-up ≤ 0 means none.
struct AdEmaMixConfig {
    double beta1 = 0.9, beta2 = 0.999, beta3 = 0.999, eps = 1e-8, alpha = 5;
    std::int64_t beta3_warmup = -1, alpha_warmup = -1;
    double alpha_at(std::int64_t t) const;
    double beta3_at(std::int64_t t) const;
};
std::unique_ptr<UpdateRule> make_ademamix(const AdEmaMixConfig& config);

}  // namespace tera
