// The update of a group of parameters in one launch: a table of pieces says which elements a block of threads works on.
// Each element is read once and written once, four at a time, so the kernel moves at the speed of memory.
#include "core/readback.h"
#include "core/transfer.h"
#include "ops/cuda_types.cuh"
#include "optim/measure_cuda.h"
#include "optim/optimizer_backend.h"

namespace tera {
namespace {

using namespace ops::cuda;

constexpr int threads = 256;

/// One parameter's tensors in device memory.
struct DeviceParam {
    void *weight, *value, *grad;  ///< value null: the weight is the value
    void* rest;                   ///< of a weight that is in halves, and has no memory of its own; else null
    void* state[UpdateBlock<float>::max_states];
    DType grad_dtype;
    bool decay, decoupled;
    bool zeroes;   ///< its gradient, once it is used
    bool aligned;  ///< value, rest and gradient begin where several elements can be read at once
};

template <class T, bool l2>
struct AdamFormula {
    static constexpr int states = 2;
    T b1, b2, c1, c2, correct1, correct2, eps;
    explicit AdamFormula(const RuleNumbers& n)
        : b1(static_cast<T>(n.beta1)),
          b2(static_cast<T>(n.beta2)),
          c1(static_cast<T>(1 - n.beta1)),
          c2(static_cast<T>(1 - n.beta2)),
          correct1(static_cast<T>(n.correct1)),
          correct2(static_cast<T>(n.correct2)),
          eps(static_cast<T>(n.eps)) {}
    __device__ void operator()(T& w, T g, T* state, T lr, T decay) const {
        if constexpr (l2) g += decay * w;
        T mean = b1 * state[0] + c1 * g, square = b2 * state[1] + c2 * g * g;
        state[0] = mean;
        state[1] = square;
        T change = mean * correct1 / (sqrt(square * correct2) + eps);
        if constexpr (!l2) change += decay * w;
        w -= lr * change;
    }
};

template <class T, bool has_momentum>
struct SgdFormula {
    static constexpr int states = has_momentum ? 1 : 0;
    T momentum;
    explicit SgdFormula(const RuleNumbers& n) : momentum(static_cast<T>(n.momentum)) {}
    __device__ void operator()(T& w, T g, [[maybe_unused]] T* state, T lr, T decay) const {
        g += decay * w;
        if constexpr (has_momentum) {
            g += momentum * state[0];
            state[0] = g;
        }
        w -= lr * g;
    }
};

template <class T>
struct AdEmaMixFormula {
    static constexpr int states = 3;
    T b1, b2, b3, c1, c2, c3, alpha, correct1, correct2, eps;
    explicit AdEmaMixFormula(const RuleNumbers& n)
        : b1(static_cast<T>(n.beta1)),
          b2(static_cast<T>(n.beta2)),
          b3(static_cast<T>(n.beta3)),
          c1(static_cast<T>(1 - n.beta1)),
          c2(static_cast<T>(1 - n.beta2)),
          c3(static_cast<T>(1 - n.beta3)),
          alpha(static_cast<T>(n.alpha)),
          correct1(static_cast<T>(n.correct1)),
          correct2(static_cast<T>(n.correct2)),
          eps(static_cast<T>(n.eps)) {}
    __device__ void operator()(T& w, T g, T* state, T lr, T decay) const {
        T near = b1 * state[0] + c1 * g, far = b3 * state[1] + c3 * g, square = b2 * state[2] + c2 * g * g;
        state[0] = near;
        state[1] = far;
        state[2] = square;
        w -= lr * ((near * correct1 + alpha * far) / (sqrt(square) * correct2 + eps) + decay * w);
    }
};

template <class From, class To, int n>
__device__ Few<To, n> load_from(const void* base, std::int64_t i) {
    auto in = load_few<n>(static_cast<const From*>(base) + i);
    Few<To, n> out;
#pragma unroll
    for (int k = 0; k < n; ++k) out.v[k] = static_cast<To>(widen(in.v[k]));
    return out;
}
template <class To, int n>
__device__ Few<To, n> load(const void* base, DType dtype, std::int64_t i) {
    switch (dtype) {
        case DType::f64:
            return load_from<double, To, n>(base, i);
        case DType::f32:
            return load_from<float, To, n>(base, i);
        case DType::bf16:
            return load_from<__nv_bfloat16, To, n>(base, i);
        default:
            return load_from<__half, To, n>(base, i);
    }
}

template <class To, class From, int n>
__device__ void store_as(void* base, std::int64_t i, const Few<From, n>& in) {
    Few<To, n> out;
#pragma unroll
    for (int k = 0; k < n; ++k) out.v[k] = narrow<To>(in.v[k]);
    store_few(static_cast<To*>(base) + i, out);
}

template <int n>
__device__ void store_zeros(void* base, DType dtype, std::int64_t i) {
    switch (dtype) {
        case DType::f64:
            return store_as<double>(base, i, Few<double, n>{});
        case DType::f32:
            return store_as<float>(base, i, Few<float, n>{});
        default:  // two bytes, and zero bits are zero
            return store_as<__half>(base, i, Few<float, n>{});
    }
}

template <int n>
__device__ Few<float, n> join(const void* value, const void* rest, std::int64_t i) {
    const auto upper = load_few<n>(static_cast<const std::uint16_t*>(value) + i),
               lower = load_few<n>(static_cast<const std::uint16_t*>(rest) + i);
    Few<float, n> out;
#pragma unroll
    for (int k = 0; k < n; ++k) out.v[k] = joined({upper.v[k], static_cast<std::int16_t>(lower.v[k])});
    return out;
}
template <int n>
__device__ void store_halves(void* value, void* rest, std::int64_t i, const Few<float, n>& in) {
    Few<std::uint16_t, n> upper, lower;
#pragma unroll
    for (int k = 0; k < n; ++k) {
        const SplitWeight halves = split(in.v[k]);
        upper.v[k] = halves.value;
        lower.v[k] = static_cast<std::uint16_t>(halves.rest);
    }
    store_few(static_cast<std::uint16_t*>(value) + i, upper);
    store_few(static_cast<std::uint16_t*>(rest) + i, lower);
}

__global__ void keep_rest_kernel(std::uint16_t* rest, const std::uint16_t* value, const float* numbers,
                                 std::int64_t n) {
    const std::int64_t i = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
    if (i < n) rest[i] = static_cast<std::uint16_t>(rest_beside(value[i], numbers[i]));
}

template <class T>
struct Rates {
    T lr, decay, factor;
};

template <class T, int n>
__device__ Few<T, n> load_weight(const DeviceParam& p, std::int64_t i) {
    if constexpr (std::is_same_v<T, float>)
        if (p.rest != nullptr) return join<n>(p.value, p.rest, i);
    return load_from<T, T, n>(p.weight, i);
}
template <class T, int n>
__device__ void store_weight(const DeviceParam& p, std::int64_t i, const Few<T, n>& weight) {
    if constexpr (std::is_same_v<T, float>)
        if (p.rest != nullptr) return store_halves(p.value, p.rest, i, weight);
    store_as<T>(p.weight, i, weight);
    if (p.value != nullptr) store_as<__half>(p.value, i, weight);
}

template <int n, class T, class Formula>
__device__ void update_few(const DeviceParam& p, std::int64_t i, const Formula& formula, const Rates<T>& rates,
                           bool zero_grad) {
    Few<T, n> grad = load<T, n>(p.grad, p.grad_dtype, i), weight = load_weight<T, n>(p, i);
    Few<T, n> state[Formula::states > 0 ? Formula::states : 1];
#pragma unroll
    for (int s = 0; s < Formula::states; ++s) state[s] = load_from<T, T, n>(p.state[s], i);
#pragma unroll
    for (int k = 0; k < n; ++k) {
        T of_one[Formula::states > 0 ? Formula::states : 1];
#pragma unroll
        for (int s = 0; s < Formula::states; ++s) of_one[s] = state[s].v[k];
        formula(weight.v[k], grad.v[k] * rates.factor, of_one, rates.lr, rates.decay);
#pragma unroll
        for (int s = 0; s < Formula::states; ++s) state[s].v[k] = of_one[s];
    }
    store_weight(p, i, weight);
#pragma unroll
    for (int s = 0; s < Formula::states; ++s) store_as<T>(p.state[s], i, state[s]);
    if (zero_grad && p.zeroes) store_zeros<n>(p.grad, p.grad_dtype, i);
}

/// As clip_factor on the host, operation by operation.
__device__ double clipped_factor(const RanksMeasured& grads, const StepArgs& args) {
    if (args.clip_norm <= 0) return args.grad_factor;
    double norm = __dmul_rn(sqrt(grads.all.squares), args.grad_factor);
    double shrink = args.clip_norm / __dadd_rn(norm, 1e-6);
    return shrink < 1 ? args.grad_factor * shrink : args.grad_factor;
}

template <class T, class Formula>
__global__ void __launch_bounds__(threads) update_kernel(const DevicePiece* pieces, const DeviceParam* params,
                                                         const RanksMeasured* grads, StepArgs args, Formula formula) {
    constexpr int width = 4;
    DevicePiece piece = pieces[blockIdx.x];
    DeviceParam p = params[piece.tensor];
    std::int64_t end = piece.begin + piece.count, whole = piece.begin + (p.aligned ? piece.count / width * width : 0);
    std::int64_t first = piece.begin + std::int64_t{threadIdx.x} * width, rest = whole + threadIdx.x;
    if (args.skip_not_finite && grads->all.not_finite > 0) {
        if (!args.zero_grad || !p.zeroes) return;
        for (std::int64_t i = first; i < whole; i += threads * width) store_zeros<width>(p.grad, p.grad_dtype, i);
        for (std::int64_t i = rest; i < end; i += threads) store_zeros<1>(p.grad, p.grad_dtype, i);
        return;
    }
    Rates<T> rates;
    rates.lr = static_cast<T>(p.decoupled && args.decoupled_lr >= 0 ? args.decoupled_lr : args.lr);
    rates.decay = static_cast<T>(p.decay ? args.weight_decay : 0.0);
    rates.factor = static_cast<T>(grads != nullptr ? clipped_factor(*grads, args) : args.grad_factor);
    for (std::int64_t i = first; i < whole; i += threads * width)
        update_few<width, T>(p, i, formula, rates, args.zero_grad);
    for (std::int64_t i = rest; i < end; i += threads) update_few<1, T>(p, i, formula, rates, args.zero_grad);
}

template <class T, class F>
void with_formula(const RuleNumbers& n, const F& f) {
    switch (n.kind) {
        case RuleNumbers::Kind::adam:
            return f(AdamFormula<T, false>(n));
        case RuleNumbers::Kind::adam_l2:
            return f(AdamFormula<T, true>(n));
        case RuleNumbers::Kind::sgd:
            return f(SgdFormula<T, false>(n));
        case RuleNumbers::Kind::sgd_momentum:
            return f(SgdFormula<T, true>(n));
        case RuleNumbers::Kind::ademamix:
            return f(AdEmaMixFormula<T>(n));
    }
}

class CudaOptimizer final : public OptimizerBackend {
  public:
    CudaOptimizer(const OptimizerTensors& tensors, Arena& arena, const Exec& exec)
        : tensors_(tensors),
          measuring_(grads_of(tensors.counted), arena, exec),
          pieces_(tensors.main, arena, exec, tensors.groups),
          table_(arena.tensor(DType::u8, {static_cast<std::int64_t>(tensors.slices.size() * sizeof(DeviceParam))})),
          found_(sizeof(RanksMeasured), exec.gpu) {
        for (const SplitTensor& t : tensors.main)
            TERA_CHECK(t.dtype() == tensors.main[0].dtype(), "main weights in ", name_of(t.dtype()), " beside ",
                       name_of(tensors.main[0].dtype()));
    }

    Tensor measure(const Exec& exec) override {
        measuring_.enqueue(exec);
        return RanksMeasured::sums(measuring_.result().data, Device::cuda);
    }
    void agreed(const Exec& exec) override { found_.start(exec, measuring_.result()); }
    void step(const Exec& exec, const UpdateRule& rule, const StepArgs& args, bool measured, int group) override;
    GradStats grads() override;
    void keep_rest(const Exec& exec, const SplitTensor& main, ConstTensor numbers) const override;

  private:
    void upload_table(const Exec& exec);
    template <class T>
    void launch(const Exec& exec, const RuleNumbers& numbers, const StepArgs& args, const RanksMeasured* grads,
                int group) const;

    const OptimizerTensors& tensors_;
    CudaMeasure measuring_;
    DevicePieces pieces_;
    Tensor table_;
    std::vector<char> decoupled_;  ///< as the table says; empty: there is no table yet
    Readback found_;
};

GradStats CudaOptimizer::grads() {
    return grad_stats(*static_cast<const RanksMeasured*>(found_.wait()), tensors_.counted);
}

void CudaOptimizer::keep_rest(const Exec& exec, const SplitTensor& main, ConstTensor numbers) const {
    const std::int64_t n = main.numel();
    keep_rest_kernel<<<blocks_for(n, threads, INT32_MAX), threads, 0, exec.gpu->stream>>>(
        main.rest.ptr<std::uint16_t>(), reinterpret_cast<const std::uint16_t*>(main.tensor.data), numbers.ptr<float>(),
        n);
    TERA_LAUNCHED();
}

void CudaOptimizer::upload_table(const Exec& exec) {
    std::vector<DeviceParam> table;
    for (std::size_t i = 0; i < tensors_.slices.size(); ++i) {
        const ParamSlice& slice = tensors_.slices[i];
        const Tensor value = slice.value(), grad = slice.grad();
        DeviceParam entry{};
        const SplitTensor& main = tensors_.main[i];
        TERA_CHECK(main.is_split() || value.dtype != DType::bf16, "whole main weights beside values in bf16");
        entry.rest = main.is_split() ? main.rest.data : nullptr;
        entry.weight = main.is_split() ? nullptr : main.tensor.data;
        entry.value = value.data == entry.weight ? nullptr : value.data;
        entry.grad = grad.data;
        for (std::size_t s = 0; s < tensors_.states.size(); ++s) entry.state[s] = tensors_.states[s][i].data;
        entry.grad_dtype = grad.dtype;
        entry.aligned = true;
        for (const void* data : {static_cast<void*>(value.data), entry.rest, static_cast<void*>(grad.data)})
            entry.aligned = entry.aligned && reinterpret_cast<std::uintptr_t>(data) % 32 == 0;
        entry.decay = slice.param->weight_decay;
        entry.decoupled = tensors_.decoupled[i] != 0;
        entry.zeroes = !slice.param->grad_by_product;
        table.push_back(entry);
    }
    copy_from_host(exec, table_, table.data());
    decoupled_ = tensors_.decoupled;
}

template <class T>
void CudaOptimizer::launch(const Exec& exec, const RuleNumbers& numbers, const StepArgs& args,
                           const RanksMeasured* grads, int group) const {
    const auto* params = reinterpret_cast<const DeviceParam*>(table_.data);
    with_formula<T>(numbers, [&](auto formula) {
        update_kernel<T><<<static_cast<unsigned>(pieces_.count(group)), threads, 0, exec.gpu->stream>>>(
            pieces_.data(group), params, grads, args, formula);
    });
    TERA_LAUNCHED();
}

void CudaOptimizer::step(const Exec& exec, const UpdateRule& rule, const StepArgs& args, bool measured, int group) {
    if (pieces_.count(group) == 0) return;
    if (decoupled_ != tensors_.decoupled) upload_table(exec);
    const auto* grads = measured ? reinterpret_cast<const RanksMeasured*>(measuring_.result().data) : nullptr;
    if (tensors_.main[0].dtype() == DType::f64)
        launch<double>(exec, rule.numbers(), args, grads, group);
    else
        launch<float>(exec, rule.numbers(), args, grads, group);
}

}  // namespace

std::unique_ptr<OptimizerBackend> make_cuda_optimizer(const OptimizerTensors& tensors, Arena& arena, const Exec& exec) {
    return std::make_unique<CudaOptimizer>(tensors, arena, exec);
}

}  // namespace tera
