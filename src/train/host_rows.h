// A tensor seen from the host: itself on the CPU, a copy of a tensor on a GPU.
#pragma once

#include <vector>

#include "core/transfer.h"

namespace tera {

/// For reading.
class HostView {
  public:
    HostView(const Exec& exec, ConstTensor tensor) : view_(tensor) {
        if (tensor.device == Device::cpu) return;
        copy_.resize(tensor.bytes());
        copy_to_host(exec, copy_.data(), tensor);
        view_.data = copy_.data();
        view_.device = Device::cpu;
    }
    ConstTensor tensor() const { return view_; }

  private:
    std::vector<std::byte> copy_;
    ConstTensor view_;
};

/// For writing: what was written arrives with store().
class HostBuffer {
  public:
    HostBuffer(const Exec& exec, Tensor tensor) : exec_(exec), target_(tensor), view_(tensor) {
        if (tensor.device == Device::cpu) return;
        copy_.resize(tensor.bytes());
        view_.data = copy_.data();
        view_.device = Device::cpu;
    }
    Tensor tensor() const { return view_; }
    void store() const {
        if (target_.device != Device::cpu) copy_from_host(exec_, target_, copy_.data());
    }

  private:
    const Exec& exec_;
    Tensor target_;
    std::vector<std::byte> copy_;
    Tensor view_;
};

}  // namespace tera
