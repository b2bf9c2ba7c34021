// Buffers that are filled, copied to the GPU and read there, again and again, while nobody waits on the host.
#include "core/cuda/upload_slots.h"

#include "cuda/cuda_world.h"
#include "ops/convert.h"

namespace tera::test {
namespace {

TEST(CudaUploadSlots, are_not_written_again_before_they_were_read) {
    NEED_GPU();
    constexpr std::int64_t n = 1 << 14, turns = 9;
    for (const int held : {1, 3}) {
        CudaWorld g;
        UploadSlots slots(g.gpu, held);
        slots.reserve(n * sizeof(float));
        const Tensor seen = g.store.tensor(DType::f32, {turns, n});
        for (std::int64_t turn = 0; turn < turns; ++turn) {
            const UploadSlots::Slot slot = slots.begin(n * sizeof(float));
            std::fill_n(reinterpret_cast<float*>(slot.host), n, static_cast<float>(turn));
            slots.send(n * sizeof(float));
            const Tensor sent(slot.device, DType::f32, Device::cuda, {1, n});
            for (int again = 0; again < 3; ++again) ops::copy(g.ctx.temp, seen.slice(turn, 1), sent);
        }
        const std::vector<double> all = g.down(seen);
        for (std::int64_t turn = 0; turn < turns; ++turn)
            for (const std::int64_t i : {std::int64_t{0}, n / 2, n - 1})
                EXPECT_EQ(all[static_cast<std::size_t>(turn * n + i)], static_cast<double>(turn)) << held;
        g.expect_sentinels();
    }
}

}  // namespace
}  // namespace tera::test
