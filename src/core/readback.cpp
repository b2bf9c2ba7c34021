#include "core/readback.h"

#include <cstring>
#include <vector>

#ifdef TERA_WITH_CUDA
#include "core/cuda/readback.h"
#endif

namespace tera {
namespace {

class HostReadback final : public Readback::Target {
  public:
    explicit HostReadback(std::size_t bytes) : bytes_(bytes) {}
    void start(const Exec&, ConstTensor from) override {
        if (from.bytes()) std::memcpy(bytes_.data(), from.data, from.bytes());
    }
    const void* wait() override { return bytes_.data(); }

  private:
    std::vector<std::byte> bytes_;
};

std::unique_ptr<Readback::Target> make_target(std::size_t bytes, [[maybe_unused]] Gpu* gpu) {
#ifdef TERA_WITH_CUDA
    if (gpu != nullptr) return make_cuda_readback(bytes, *gpu);
#endif
    return std::make_unique<HostReadback>(bytes);
}

}  // namespace

Readback::Readback(std::size_t bytes, Gpu* gpu) : room_(bytes), target_(make_target(bytes, gpu)) {}

void Readback::start(const Exec& exec, ConstTensor from) {
    TERA_CHECK(from.bytes() <= room_, from.bytes(), " bytes into room for ", room_);
    target_->start(exec, from);
    started_ = true;
}

const void* Readback::wait() {
    TERA_CHECK(started_, "nothing was started");
    return target_->wait();
}

}  // namespace tera
