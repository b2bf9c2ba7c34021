#include "optim/optimizer.h"

#include <algorithm>
#include <cstring>

namespace tera {
namespace {

// Short enough for the main weights just updated to be still in the first cache when they are rounded to the values.
constexpr std::int64_t block_elements = 2048;

bool is_main(const Param& p) { return p.value.dtype == acc_dtype(p.value.dtype); }

std::size_t aligned(std::size_t bytes) { return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment; }

std::size_t main_bytes(const Param& p) {
    return aligned(static_cast<std::size_t>(p.value.numel()) * size_of(acc_dtype(p.value.dtype)));
}

template <class To, class From>
void convert(To* to, const From* from, std::int64_t n) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

template <class To, class From>
void copy_tensor(const Exec& exec, Tensor to, ConstTensor from) {
    To* const out = to.ptr<To>();
    const From* const in = from.ptr<From>();
    parallel_for(exec, to.numel(), piece_elements,
                 [&](std::int64_t begin, std::int64_t end) { convert(out + begin, in + begin, end - begin); });
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

}  // namespace

std::int64_t Optimizer::state_bytes(const UpdateRule& rule, const std::vector<Param*>& params) {
    std::size_t bytes = 0;
    const std::size_t states = rule.states().size();
    for (const Param* p : params) bytes += main_bytes(*p) * (states + (is_main(*p) ? 0 : 1));
    return static_cast<std::int64_t>(bytes);
}

Optimizer::Optimizer(std::unique_ptr<UpdateRule> rule, std::vector<Param*> params, Arena& arena, const Exec& exec)
    : rule_(std::move(rule)), params_(std::move(params)), pieces_(cut_into_pieces(params_)) {
    const std::size_t kinds = rule_->states().size();
    TERA_CHECK(kinds <= UpdateBlock<float>::max_states, kinds, " states");
    states_.resize(kinds);
    decoupled_.assign(params_.size(), 0);
    // One allocation for all, cut here: the arena need not grow, and the threads share the touching of fresh pages.
    std::byte* next = arena.allocate(static_cast<std::size_t>(state_bytes(*rule_, params_)));
    auto take = [&](const Param& p) {
        Tensor t(next, acc_dtype(p.value.dtype), p.value.device, p.value.shape);
        if (next != nullptr) next += main_bytes(p);
        return t;
    };
    for (const Param* p : params_) {
        main_.push_back(is_main(*p) ? p->value : take(*p));
        for (auto& of_kind : states_) of_kind.push_back(take(*p));
    }
    if (arena.kind() == Arena::Kind::counting) return;
    exec.pool->run(static_cast<std::int64_t>(pieces_.size()), [&](std::int64_t i) {
        const Piece& piece = pieces_[static_cast<std::size_t>(i)];
        for (auto& of_kind : states_) {
            const Tensor& t = of_kind[static_cast<std::size_t>(piece.param)];
            const std::size_t size = size_of(t.dtype);
            std::memset(t.data + static_cast<std::size_t>(piece.begin) * size, 0,
                        static_cast<std::size_t>(piece.end - piece.begin) * size);
        }
    });
    copy_values_to_main(exec);
}

void Optimizer::step(const Exec& exec, const StepArgs& args) {
    rule_->begin_step(steps_ + 1);
    exec.pool->run(static_cast<std::int64_t>(pieces_.size()), [&](std::int64_t i) {
        const Piece& piece = pieces_[static_cast<std::size_t>(i)];
        if (main_[static_cast<std::size_t>(piece.param)].dtype == DType::f64)
            step_piece<double>(piece, args);
        else
            step_piece<float>(piece, args);
    });
    ++steps_;
}

template <class T>
void Optimizer::step_piece(const Piece& piece, const StepArgs& args) const {
    const auto index = static_cast<std::size_t>(piece.param);
    const Param& param = *params_[index];
    const std::size_t grad_size = size_of(param.grad.dtype);
    UpdateBlock<T> block;
    block.lr = decoupled_[index] && args.decoupled_lr >= 0 ? args.decoupled_lr : args.lr;
    block.weight_decay = param.weight_decay ? args.weight_decay : 0;
    block.grad_factor = args.grad_factor;
    T converted[block_elements];
    for (std::int64_t begin = piece.begin; begin < piece.end; begin += block_elements) {
        block.n = std::min(block_elements, piece.end - begin);
        block.weight = main_[index].ptr<T>() + begin;
        block.grad = grad_as<T>(param.grad, begin, block.n, converted);
        for (std::size_t k = 0; k < states_.size(); ++k) block.state[k] = states_[k][index].template ptr<T>() + begin;
        rule_->update(block);
        if constexpr (std::is_same_v<T, float>) {
            if (param.value.dtype == DType::bf16)
                convert(param.value.ptr<bf16_t>() + begin, block.weight, block.n);
            else if (param.value.dtype == DType::f16)
                convert(param.value.ptr<f16_t>() + begin, block.weight, block.n);
        }
        if (args.zero_grad) {
            std::memset(param.grad.data + static_cast<std::size_t>(begin) * grad_size, 0,
                        static_cast<std::size_t>(block.n) * grad_size);
        }
    }
}

std::vector<OptimizerTensor> Optimizer::state() const {
    std::vector<OptimizerTensor> all;
    const std::vector<std::string> kinds = rule_->states();
    for (std::size_t i = 0; i < params_.size(); ++i) {
        if (!is_main(*params_[i])) all.push_back({params_[i]->name, "master", main_[i]});
        for (std::size_t k = 0; k < kinds.size(); ++k) all.push_back({params_[i]->name, kinds[k], states_[k][i]});
    }
    return all;
}

void Optimizer::copy_values_to_main(const Exec& exec) {
    for (std::size_t i = 0; i < params_.size(); ++i) {
        const Tensor& value = params_[i]->value;
        if (value.dtype == DType::bf16)
            copy_tensor<float, bf16_t>(exec, main_[i], value);
        else if (value.dtype == DType::f16)
            copy_tensor<float, f16_t>(exec, main_[i], value);
    }
}

void Optimizer::copy_main_to_values(const Exec& exec) {
    for (std::size_t i = 0; i < params_.size(); ++i) {
        const Tensor& value = params_[i]->value;
        if (value.dtype == DType::bf16)
            copy_tensor<bf16_t, float>(exec, value, main_[i]);
        else if (value.dtype == DType::f16)
            copy_tensor<f16_t, float>(exec, value, main_[i]);
    }
}

void Optimizer::use_decoupled_lr(const std::vector<const Param*>& params) {
    for (std::size_t i = 0; i < params_.size(); ++i) {
        decoupled_[i] = std::find(params.begin(), params.end(), params_[i]) != params.end();
    }
}

}  // namespace tera
