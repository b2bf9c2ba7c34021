// Memory of the device for the tests, in and out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

namespace soft_gpu_own {

template <class T>
class DeviceArray {
  public:
    /// With nothing in it.
    explicit DeviceArray(std::size_t n) : n_(n) { (void)cudaMalloc(reinterpret_cast<void**>(&data_), n * sizeof(T)); }
    explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
        (void)cudaMemcpy(data_, values.data(), n_ * sizeof(T), cudaMemcpyHostToDevice);
    }
    ~DeviceArray() { (void)cudaFree(data_); }
    DeviceArray(const DeviceArray&) = delete;
    DeviceArray& operator=(const DeviceArray&) = delete;

    T* data() { return data_; }
    /// Zeros if the device does not answer.
    std::vector<T> values() const {
        std::vector<T> out(n_);
        if (cudaMemcpy(out.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost) != cudaSuccess) out.assign(n_, T{});
        return out;
    }

  private:
    T* data_ = nullptr;
    std::size_t n_;
};

}  // namespace soft_gpu_own
