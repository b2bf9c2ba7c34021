#include "optim/update_rule.h"

namespace tera {
namespace {

class Sgd final : public UpdateRule {
  public:
    explicit Sgd(double momentum) : momentum_(momentum) {}

    std::vector<std::string> states() const override {
        return momentum_ == 0 ? std::vector<std::string>{} : std::vector<std::string>{"momentum_buffer"};
    }
    void begin_step(std::int64_t) override {}
    void update(const UpdateBlock<float>& block) const override { choose(block); }
    void update(const UpdateBlock<double>& block) const override { choose(block); }
    RuleNumbers numbers() const override {
        return {.kind = momentum_ == 0 ? RuleNumbers::Kind::sgd : RuleNumbers::Kind::sgd_momentum,
                .momentum = momentum_};
    }

  private:
    template <class T>
    void choose(const UpdateBlock<T>& block) const {
        momentum_ == 0 ? run<false>(block) : run<true>(block);
    }

    template <bool has_momentum, class T>
    void run(const UpdateBlock<T>& block) const {
        const T momentum = static_cast<T>(momentum_), lr = static_cast<T>(block.lr);
        const T decay = static_cast<T>(block.weight_decay), factor = static_cast<T>(block.grad_factor);
        T* const w = block.weight;
        T* const buffer = block.state[0];
        const T* const grad = block.grad;
#pragma omp simd
        for (std::int64_t i = 0; i < block.n; ++i) {
            T g = grad[i] * factor + decay * w[i];
            if constexpr (has_momentum) {
                g += momentum * buffer[i];
                buffer[i] = g;
            }
            w[i] -= lr * g;
        }
    }

    double momentum_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_sgd(double momentum) { return std::make_unique<Sgd>(momentum); }

}  // namespace tera
