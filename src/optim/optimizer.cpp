#include "optim/optimizer.h"

#include <algorithm>
#include <cstring>

#include "ops/convert.h"
#include "optim/optimizer_backend.h"
#include "optim/pieces.h"

namespace tera {
namespace {

bool is_main(const ParamSlice& s) { return s.param->value.dtype == acc_dtype(s.param->value.dtype); }

bool splits(const ParamSlice& s) { return s.param->value.dtype == DType::bf16; }

std::size_t bytes_in(const ParamSlice& s, DType dtype) {
    const std::size_t bytes = static_cast<std::size_t>(s.count) * size_of(dtype);
    return (bytes + Arena::alignment - 1) / Arena::alignment * Arena::alignment;
}
std::size_t bytes_of_state(const ParamSlice& s) { return bytes_in(s, acc_dtype(s.param->value.dtype)); }
/// Of main weights, beside the values.
std::size_t bytes_of_main(const ParamSlice& s) {
    return is_main(s) ? 0 : splits(s) ? bytes_in(s, DType::u16) : bytes_of_state(s);
}

/// The threads share the touching of fresh pages.
void zero_on_host(const Exec& exec, std::byte* data, std::size_t bytes) {
    parallel_for(exec, static_cast<std::int64_t>(bytes), 1 << 20, [&](std::int64_t begin, std::int64_t end) {
        std::memset(data + begin, 0, static_cast<std::size_t>(end - begin));
    });
}

std::unique_ptr<OptimizerBackend> make_backend(const OptimizerTensors& tensors, [[maybe_unused]] Arena& arena,
                                               const Exec& exec) {
#ifdef TERA_WITH_CUDA
    if (exec.device == Device::cuda) return make_cuda_optimizer(tensors, arena, exec);
#endif
    TERA_CHECK(exec.device == Device::cpu, "this build has no CUDA backend");
    return make_cpu_optimizer(tensors);
}

}  // namespace

std::int64_t Optimizer::state_bytes(const UpdateRule& rule, const std::vector<ParamSlice>& slices) {
    std::size_t bytes = 0;
    const std::size_t states = rule.states().size();
    for (const ParamSlice& s : slices) bytes += bytes_of_state(s) * states + bytes_of_main(s);
    return static_cast<std::int64_t>(bytes);
}

Optimizer::Optimizer(std::unique_ptr<UpdateRule> rule, const std::vector<Param*>& params, Arena& arena,
                     const Exec& exec)
    : Optimizer(std::move(rule), Share{whole_slices(params), whole_slices(params), nullptr}, arena, exec) {}

Optimizer::Optimizer(std::unique_ptr<UpdateRule> rule, Share share, Arena& arena, const Exec& exec)
    : rule_(std::move(rule)), agreement_(share.agreement) {
    tensors_.slices = std::move(share.owned);
    tensors_.counted = std::move(share.counted);
    tensors_.groups = std::move(share.groups);
    TERA_CHECK(tensors_.groups.of.empty() || tensors_.groups.of.size() == tensors_.slices.size(),
               tensors_.groups.of.size(), " groups of ", tensors_.slices.size(), " slices");
    const std::size_t kinds = rule_->states().size();
    TERA_CHECK(kinds <= UpdateBlock<float>::max_states, kinds, " states");
    tensors_.states.resize(kinds);
    tensors_.decoupled.assign(tensors_.slices.size(), 0);
    // One allocation for all, cut here: the arena need not grow.
    const auto bytes = static_cast<std::size_t>(state_bytes(*rule_, tensors_.slices));
    std::byte* const all = arena.allocate(bytes);
    std::byte* next = all;
    auto take = [&](const ParamSlice& s, DType dtype) {
        const Tensor value = s.value();
        Tensor t(next, dtype, value.device, value.shape);
        if (next != nullptr) next += bytes_in(s, dtype);
        return t;
    };
    for (const ParamSlice& s : tensors_.slices) {
        const DType full = acc_dtype(s.param->value.dtype);
        if (is_main(s))
            tensors_.main.emplace_back(s.value());
        else if (splits(s))
            tensors_.main.emplace_back(s.value(), take(s, DType::u16));
        else
            tensors_.main.emplace_back(take(s, full));
        for (auto& of_kind : tensors_.states) of_kind.push_back(take(s, full));
    }
    backend_ = make_backend(tensors_, arena, exec);
    if (arena.kind() == Arena::Kind::counting) return;
    if (exec.device == Device::cpu)
        zero_on_host(exec, all, bytes);
    else
        arena.source().zero(all, bytes);
    copy_values_to_main(exec);
}

Optimizer::~Optimizer() = default;

void Optimizer::measure(const Exec& exec) {
    TERA_CHECK(!stepped_, "the step before was not finished");
    const Tensor sums = backend_->measure(exec);
    if (agreement_ != nullptr) agreement_->all_reduce(exec, sums, Reduce::sum);
    backend_->agreed(exec);
    measured_ = true;
}

void Optimizer::step(const Exec& exec, const StepArgs& args, const std::function<void(int group)>& updated) {
    TERA_CHECK(!stepped_, "the step before was not finished");
    TERA_CHECK(measured_ || (args.clip_norm <= 0 && !args.skip_not_finite), "gradients were not measured");
    rule_->begin_step(steps_ + 1);
    for (int group = 0; group < tensors_.groups.count; ++group) {
        backend_->step(exec, *rule_, args, measured_, group);
        if (updated) updated(group);
    }
    if (args.zero_grad)
        for (const ParamSlice& s : tensors_.slices) s.param->grad_is_old = s.param->grad_by_product;
    stepped_ = true;
    may_skip_ = args.skip_not_finite;
}

StepResult Optimizer::finish(const Exec&) {
    TERA_CHECK(stepped_, "no step to finish");
    StepResult result;
    if (measured_) result.grads = backend_->grads();
    result.skipped = may_skip_ && !result.grads.finite();
    if (!result.skipped) ++steps_;
    measured_ = stepped_ = false;
    return result;
}

std::vector<OptimizerTensor> Optimizer::state() const {
    std::vector<OptimizerTensor> all;
    const std::vector<std::string> kinds = rule_->states();
    for (std::size_t i = 0; i < tensors_.slices.size(); ++i) {
        const ParamSlice& s = tensors_.slices[i];
        if (!is_main(s)) all.push_back({s.param->name, "master", tensors_.main[i], s.begin});
        for (std::size_t k = 0; k < kinds.size(); ++k)
            all.push_back({s.param->name, kinds[k], tensors_.states[k][i], s.begin});
    }
    return all;
}

std::vector<SplitTensor> Optimizer::main_of(const std::vector<ParamSlice>& slices) const {
    std::vector<SplitTensor> all;
    for (const ParamSlice& wanted : slices) {
        const auto& own = tensors_.slices;
        const auto found = std::find_if(own.begin(), own.end(), [&](const ParamSlice& s) {
            return s.param == wanted.param && s.begin <= wanted.begin &&
                   wanted.begin + wanted.count <= s.begin + s.count;
        });
        TERA_CHECK(found != own.end(), wanted.param->name, " is not updated here");
        const SplitTensor& main = tensors_.main[static_cast<std::size_t>(found - own.begin())];
        all.push_back(main.part(wanted.begin - found->begin, wanted.count));
    }
    return all;
}

void Optimizer::draw_main(const Exec& exec, std::uint64_t seed) {
    constexpr std::int64_t at_once = 1 << 20;
    for (std::size_t i = 0; i < tensors_.slices.size(); ++i) {
        const ParamSlice& s = tensors_.slices[i];
        const SplitTensor& main = tensors_.main[i];
        if (!main.is_split()) {
            if (!is_main(s)) init_slice(s, main.tensor, exec, seed);
            continue;
        }
        for (std::int64_t begin = 0; begin < s.count; begin += at_once) {
            const std::int64_t count = std::min(at_once, s.count - begin);
            ArenaScope scope(*exec.arena);
            const Tensor drawn = exec.tensor(DType::f32, {count});
            if (exec.counts()) break;
            init_slice({s.param, s.begin + begin, count}, drawn, exec, seed);
            backend_->keep_rest(exec, main.part(begin, count), drawn);
        }
    }
}

void Optimizer::copy_values_to_main(const Exec& exec) {
    for (std::size_t i = 0; i < tensors_.slices.size(); ++i) {
        const ParamSlice& s = tensors_.slices[i];
        if (const SplitTensor& main = tensors_.main[i]; main.is_split())
            ops::fill_zero(exec, main.rest);
        else if (!is_main(s))
            ops::convert(exec, main.tensor, s.value());
    }
}

void Optimizer::use_decoupled_lr(const std::vector<const Param*>& params) {
    for (std::size_t i = 0; i < tensors_.slices.size(); ++i) {
        tensors_.decoupled[i] = std::find(params.begin(), params.end(), tensors_.slices[i].param) != params.end();
    }
}

}  // namespace tera
