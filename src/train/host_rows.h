// A tensor seen from the host: itself on the CPU, a copy of a tensor on a GPU; put together where it is in halves.
#pragma once

#include <vector>

#include "core/transfer.h"
#include "optim/main_weights.h"

namespace tera {

/// f(begin, end) over pieces of [0, n), on all threads if there are more.
template <class F>
void for_elements(const Exec& exec, std::int64_t n, const F& f) {
    if (exec.pool == nullptr) return f(0, n);
    parallel_for(exec, n, 1 << 18, f);
}

/// For reading.
class HostView {
  public:
    HostView(const Exec& exec, ConstTensor tensor) : view_(tensor) {
        if (tensor.device == Device::cpu) return;
        view_ = ConstTensor(take(tensor.dtype, tensor.shape));
        copy_to_host(exec, copy_.data(), tensor);
    }
    HostView(const Exec& exec, const Tensor& tensor) : HostView(exec, ConstTensor(tensor)) {}
    HostView(const Exec& exec, const SplitTensor& tensor) : HostView(exec, ConstTensor(tensor.tensor)) {
        if (!tensor.is_split()) return;
        const HostView values(std::move(*this)), rest(exec, ConstTensor(tensor.rest));
        const Tensor whole = take(DType::f32, tensor.shape());
        const auto* const upper = values.view_.ptr<bf16_t>();
        const auto* const lower = rest.view_.ptr<std::uint16_t>();
        float* const out = whole.ptr<float>();
        for_elements(exec, whole.numel(), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t i = begin; i < end; ++i)
                out[i] = joined({upper[i].bits, static_cast<std::int16_t>(lower[i])});
        });
        view_ = ConstTensor(whole);
    }
    ConstTensor tensor() const { return view_; }

  private:
    Tensor take(DType dtype, const Shape& shape) {
        const Tensor t(nullptr, dtype, Device::cpu, shape);
        copy_ = std::vector<std::byte>(t.bytes());
        return Tensor(copy_.data(), dtype, Device::cpu, shape);
    }
    std::vector<std::byte> copy_;
    ConstTensor view_;
};

/// For writing: what was written arrives with store(). Of what is in halves the values stay as they are, and the rest
/// is what they leave.
class HostBuffer {
  public:
    HostBuffer(const Exec& exec, const SplitTensor& tensor)
        : exec_(exec), target_(tensor), view_(nullptr, tensor.dtype(), Device::cpu, tensor.shape()) {
        copied_ = tensor.is_split() || tensor.tensor.device != Device::cpu;
        if (copied_) copy_.resize(view_.bytes());
        view_.data = copied_ ? copy_.data() : tensor.tensor.data;
    }
    Tensor tensor() const { return view_; }
    void store() const {
        if (!copied_) return;
        if (!target_.is_split()) return copy_from_host(exec_, target_.tensor, copy_.data());
        const HostView values(exec_, ConstTensor(target_.tensor));
        std::vector<std::uint16_t> rest(static_cast<std::size_t>(view_.numel()));
        for (std::size_t i = 0; i < rest.size(); ++i)
            rest[i] =
                static_cast<std::uint16_t>(rest_beside(values.tensor().ptr<bf16_t>()[i].bits, view_.ptr<float>()[i]));
        copy_from_host(exec_, target_.rest, rest.data());
    }

  private:
    const Exec& exec_;
    SplitTensor target_;
    std::vector<std::byte> copy_;
    Tensor view_;
    bool copied_;
};

}  // namespace tera
