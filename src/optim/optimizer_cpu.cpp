#include <algorithm>
#include <cstring>

#include "optim/optimizer_backend.h"
#include "optim/pieces.h"

namespace tera {
namespace {

// Short enough for main weights, put together or just updated, to be still in the first cache when they are used next.
constexpr std::int64_t block_elements = 2048;

template <class To, class From>
void convert(To* to, const From* from, std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

/// The gradient's elements as T: in place where they are T already, else converted into `buffer`.
template <class T>
const T* grad_as(const Tensor& grad, std::int64_t begin, std::int64_t n, T* buffer) {
    if (grad.dtype == dtype_of<T>) return grad.ptr<T>() + begin;
    dispatch_float(grad.dtype, [&](auto zero) {
        using G = decltype(zero);
        const G* const g = grad.ptr<G>() + begin;
        for (std::int64_t i = 0; i < n; ++i) buffer[i] = static_cast<T>(static_cast<acc_t<G>>(g[i]));
    });
    return buffer;
}

class CpuOptimizer final : public OptimizerBackend {
  public:
    explicit CpuOptimizer(const OptimizerTensors& tensors)
        : tensors_(tensors), pieces_(cut_into_pieces(tensors.main, tensors.groups)) {}

    Tensor measure(const Exec& exec) override {
        found_ = RanksMeasured(measure_tensors(exec, grads_of(tensors_.counted)));
        return RanksMeasured::sums(reinterpret_cast<std::byte*>(&found_), Device::cpu);
    }
    void agreed(const Exec&) override { grads_ = grad_stats(found_, tensors_.counted); }
    void step(const Exec& exec, const UpdateRule& rule, const StepArgs& args, bool measured, int group) override;
    GradStats grads() override { return grads_; }
    void keep_rest(const Exec& exec, const SplitTensor& main, ConstTensor numbers) const override {
        const Halves halves(main);
        const float* const all = numbers.ptr<float>();
        parallel_for(exec, main.numel(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i) halves.keep_rest(i, all[i]);
        });
    }

  private:
    void zero_grad(std::int64_t tensor, std::int64_t begin, std::int64_t end) const;
    template <class T>
    void step_piece(const Piece& piece, const UpdateRule& rule, const StepArgs& args, double factor) const;

    const OptimizerTensors& tensors_;
    PieceGroups pieces_;
    RanksMeasured found_;
    GradStats grads_;
};

void CpuOptimizer::step(const Exec& exec, const UpdateRule& rule, const StepArgs& args, bool measured, int group) {
    const std::int64_t* const range = &pieces_.begins[static_cast<std::size_t>(group)];
    const auto for_pieces = [&](auto f) {
        exec.pool->run(range[1] - range[0],
                       [&](std::int64_t i) { f(pieces_.pieces[static_cast<std::size_t>(range[0] + i)]); });
    };
    if (args.skip_not_finite && !grads_.finite()) {
        if (args.zero_grad) for_pieces([&](const Piece& p) { zero_grad(p.tensor, p.begin, p.end); });
        return;
    }
    double factor = args.grad_factor;
    if (measured) factor *= clip_factor(grads_.norm() * args.grad_factor, args.clip_norm);
    for_pieces([&](const Piece& piece) {
        if (tensors_.main[static_cast<std::size_t>(piece.tensor)].dtype() == DType::f64)
            step_piece<double>(piece, rule, args, factor);
        else
            step_piece<float>(piece, rule, args, factor);
    });
}

void CpuOptimizer::zero_grad(std::int64_t tensor, std::int64_t begin, std::int64_t end) const {
    const ParamSlice& slice = tensors_.slices[static_cast<std::size_t>(tensor)];
    if (slice.param->grad_by_product) return;
    const Tensor grad = slice.grad();
    const std::size_t size = size_of(grad.dtype);
    std::memset(grad.data + static_cast<std::size_t>(begin) * size, 0, static_cast<std::size_t>(end - begin) * size);
}

template <class T>
void CpuOptimizer::step_piece(const Piece& piece, const UpdateRule& rule, const StepArgs& args, double factor) const {
    const auto index = static_cast<std::size_t>(piece.tensor);
    const ParamSlice& slice = tensors_.slices[index];
    const Tensor value = slice.value(), grad = slice.grad();
    const SplitTensor& main = tensors_.main[index];
    UpdateBlock<T> block;
    block.lr = tensors_.decoupled[index] && args.decoupled_lr >= 0 ? args.decoupled_lr : args.lr;
    block.weight_decay = slice.param->weight_decay ? args.weight_decay : 0;
    block.grad_factor = factor;
    T converted[block_elements];
    [[maybe_unused]] T put_together[block_elements];
    for (std::int64_t begin = piece.begin; begin < piece.end; begin += block_elements) {
        block.n = std::min(block_elements, piece.end - begin);
        block.grad = grad_as<T>(grad, begin, block.n, converted);
        for (std::size_t k = 0; k < tensors_.states.size(); ++k)
            block.state[k] = tensors_.states[k][index].template ptr<T>() + begin;
        if constexpr (std::is_same_v<T, float>)
            if (main.is_split()) {
                const Halves halves(main, begin);
                for (std::int64_t i = 0; i < block.n; ++i) put_together[i] = halves.get(i);
                block.weight = put_together;
                rule.update(block);
                for (std::int64_t i = 0; i < block.n; ++i) halves.set(i, put_together[i]);
            }
        if (!main.is_split()) {
            block.weight = main.tensor.ptr<T>() + begin;
            rule.update(block);
            if constexpr (std::is_same_v<T, float>)
                if (value.dtype == DType::f16) convert(value.ptr<f16_t>() + begin, block.weight, block.n);
        }
        if (args.zero_grad) zero_grad(piece.tensor, begin, begin + block.n);
    }
}

}  // namespace

std::unique_ptr<OptimizerBackend> make_cpu_optimizer(const OptimizerTensors& tensors) {
    return std::make_unique<CpuOptimizer>(tensors);
}

}  // namespace tera
