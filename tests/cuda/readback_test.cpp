// Results that come back along the stream.
#include "core/readback.h"

#include "cuda/cuda_world.h"
#include "ops/convert.h"

namespace tera::test {
namespace {

TEST(CudaReadback, holds_what_was_there_at_its_place_in_the_stream) {
    NEED_GPU();
    World w;
    CudaWorld g;
    Tensor x = w.random(DType::f32, {1000}), gx = g.up(x);
    Readback first(gx.bytes(), &g.gpu), second(gx.bytes(), &g.gpu);
    first.start(g.ctx.temp, gx);
    ops::fill_zero(g.ctx.temp, gx);
    second.start(g.ctx.temp, gx);
    EXPECT_EQ(std::memcmp(first.wait(), x.data, x.bytes()), 0);
    EXPECT_EQ(static_cast<const float*>(second.wait())[999], 0.0f);
    EXPECT_EQ(std::memcmp(first.wait(), x.data, x.bytes()), 0) << "asked for again, later";
    first.start(g.ctx.temp, gx);
    EXPECT_EQ(static_cast<const float*>(first.wait())[0], 0.0f);
    g.expect_sentinels();
}

TEST(CudaReadback, may_be_destroyed_with_a_copy_under_way) {
    NEED_GPU();
    CudaWorld g;
    Tensor x = g.store.zeros(DType::f32, {1 << 20});
    {
        Readback back(x.bytes(), &g.gpu);
        back.start(g.ctx.temp, x);
    }
    g.gpu.synchronize();
}

}  // namespace
}  // namespace tera::test
