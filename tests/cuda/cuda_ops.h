// What tests of ops have that compare a GPU with the CPU in one number format: both, and sentinels around what the GPU
// writes.
#pragma once

#include <memory>

#include "cuda/cuda_world.h"

namespace tera::test {

class CudaOpsTest : public testing::TestWithParam<DType> {
  protected:
    void SetUp() override { NEED_GPU(); }
    void TearDown() override {
        if (g_) g_->expect_sentinels();
    }
    CudaWorld& gpu() {
        if (!g_) g_ = std::make_unique<CudaWorld>();
        return *g_;
    }
    void expect_close(const std::string& what, ConstTensor on_gpu, ConstTensor on_cpu, double factor = 1) {
        EXPECT_LT(worst(gpu().down(on_gpu), values(on_cpu)),
                  factor * cuda_bound(on_cpu.dtype == DType::f32 ? GetParam() : on_cpu.dtype))
            << what;
    }
    World w_;

  private:
    std::unique_ptr<CudaWorld> g_;
};

inline auto all_floats() { return testing::Values(DType::f64, DType::f32, DType::bf16, DType::f16); }
inline std::string name_of_type(const testing::TestParamInfo<DType>& info) { return name_of(info.param); }

}  // namespace tera::test
