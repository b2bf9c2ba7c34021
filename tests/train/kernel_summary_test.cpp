// What kernels are for by their names, and where the time of a traced step goes.
#include "train/kernel_summary.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "core/error.h"
#include "train/bench_step.h"
#include "train/profile_window.h"

namespace tera {
namespace {

namespace fs = std::filesystem;

TEST(KernelKinds, LibrariesByWhatVendorsCallTheirs) {
    const std::pair<const char*, KernelKind> names[] = {
        {"nvjet_hsh_256x128_64x4_1x2_h_bz_coopA_NTT", KernelKind::gemm},
        {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel",
         KernelKind::gemm},
        {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_nn_align8>(T1::Params)",
         KernelKind::gemm},
        {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(cublasLt::cublasSplitKParams<float>)",
         KernelKind::gemm},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x64x128_4x1x1_kernel0_0",
         KernelKind::attention},
        {"cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_32_64x128x64_1x1x1_kernel0_0",
         KernelKind::attention},
        {"void cudnn::fusion::compute_dot_do_o_specialized<true, 0>(float*)", KernelKind::attention},
        {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >()",
         KernelKind::attention},
        {"fmha_cutlassF_bf16_aligned_64x64_rf_sm80", KernelKind::attention},
        {"some_kernel_of_a_stranger", KernelKind::other},
    };
    for (const auto& [name, kind] : names) EXPECT_EQ(name_of(kind_of_kernel(name)), name_of(kind)) << name;
}

TEST(KernelKinds, OurOwnByTheirOwnName) {
    const std::string own = "void tera::ops::cuda::(anonymous namespace)::";
    const std::pair<const char*, KernelKind> names[] = {
        {"norm_backward_kernel<__nv_bfloat16, float, 9>(__nv_bfloat16*)", KernelKind::norm},
        {"cross_entropy_kernel<float, float>(float*)", KernelKind::cross_entropy},
        {"embedding_backward_kernel<float>(float*)", KernelKind::embedding},
        {"rope_kernel<float>(float*)", KernelKind::rope},
        {"dropout_add_kernel<float>(float*)", KernelKind::residual},
        {"activation_backward_kernel<tera::ops::GeluTanh, false, float, float, 4>(float*)", KernelKind::activation},
        {"query_gradient<float, float>(cudnn_like*)", KernelKind::attention},
        {"sum_piece<float, float>(float*)", KernelKind::bias_gradient},
        {"add_pieces<float>(float*)", KernelKind::bias_gradient},
    };
    for (const auto& [name, kind] : names) EXPECT_EQ(name_of(kind_of_kernel(own + name)), name_of(kind)) << name;
    EXPECT_EQ(kind_of_kernel("void tera::(anonymous namespace)::update_kernel<tera::AdamFormula>(int)"),
              KernelKind::optimizer);
    EXPECT_EQ(kind_of_kernel("tera::(anonymous namespace)::measure_pieces(int)"), KernelKind::gradient_norm);
    EXPECT_EQ(kind_of_kernel("tera::(anonymous namespace)::add_pieces(int)"), KernelKind::gradient_norm);
}

/// Kernels that no training step launches, or that have no kind of their own.
const std::set<std::string> of_no_kind = {"random_kernel", "random_runs_kernel", "keep_rest_kernel"};

// A kernel added without a line in train/kernel_kinds.cpp would vanish in "other"; a line whose kernel is gone would
// stay for ever.
TEST(KernelKinds, EveryKernelInTheSourcesHasOne) {
    const std::regex declaration(R"(__global__\s+void\s+(?:__\w+__\([^)]*\)\s*)*(\w+)\s*\()");
    std::set<const KernelRule*> used;
    int found = 0;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(TERA_SOURCE_DIR) / "src")) {
        if (entry.path().extension() != ".cu" && entry.path().extension() != ".cuh") continue;
        std::stringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        const std::string source = text.str();
        const bool op = entry.path().parent_path().filename() == "ops";
        const std::string space = cat("void tera::", op ? "ops::cuda::" : "", "(anonymous namespace)::");
        for (std::sregex_iterator at(source.begin(), source.end(), declaration), end; at != end; ++at, ++found) {
            const std::string name = (*at)[1];
            const KernelRule* rule = rule_of_kernel(space + name + "<float>(float*)");
            used.insert(rule);
            EXPECT_NE(rule == nullptr, of_no_kind.count(name) == 0)
                << name << " in " << entry.path() << ": give it a line in src/train/kernel_kinds.cpp";
        }
    }
    EXPECT_GE(found, 20);
    for (const KernelRule& rule : own_kernel_rules())
        EXPECT_EQ(used.count(&rule), 1u) << rule.part << ": no kernel goes by this line of src/train/kernel_kinds.cpp";
}

TEST(KernelKinds, ShortNames) {
    EXPECT_EQ(short_kernel_name("void tera::ops::cuda::(anonymous namespace)::norm_kernel<float, 8>(float*, long)"),
              "norm_kernel<float, 8>");
    EXPECT_EQ(short_kernel_name("tera::(anonymous namespace)::add_pieces(tera::Measured*)"), "add_pieces");
    EXPECT_EQ(short_kernel_name("void tera::ops::cuda::(anonymous namespace)::gated<tera::ops::cuda::(anonymous "
                                "namespace)::Silu, std::pair<int, int> >(int)"),
              "gated<Silu, std::pair<int, int> >");
    EXPECT_EQ(short_kernel_name("nvjet_hsh_256x128"), "nvjet_hsh_256x128");
    EXPECT_EQ(short_kernel_name(std::string(100, 'x'), 10), "xxxxxxx...");
    EXPECT_EQ(short_kernel_name(""), "");
}

DeviceWork kernel(const char* name, std::uint64_t start_us, std::uint64_t end_us, int blocks = 1) {
    return {DeviceWork::Kind::kernel, name, start_us * 1000, end_us * 1000, {blocks, 1, 1}, 7, 0};
}

TEST(KernelSummary, TimesCallsAndGapsPerStep) {
    // Two steps of: GEMM 100 us, gap 10 us, norm 20 us, the same GEMM on another grid 50 us; 5 us between the steps.
    std::vector<DeviceWork> work;
    for (const std::uint64_t t : {1000u, 1185u}) {
        work.push_back(kernel("nvjet_a", t, t + 100, 8));
        work.push_back(kernel("void tera::norm_kernel<float>(int)", t + 110, t + 130));
        work.push_back(kernel("nvjet_a", t + 130, t + 180, 16));
    }
    const KernelSummary sum = summarize(work, 2);
    EXPECT_DOUBLE_EQ(sum.span_ms, 0.365 / 2);
    EXPECT_DOUBLE_EQ(sum.busy_ms, 0.170);
    EXPECT_NEAR(sum.gap_ms(), 0.0125, 1e-12);
    EXPECT_NEAR(sum.overlap_ms(), 0, 1e-12);
    EXPECT_DOUBLE_EQ(sum.launches, 3);
    EXPECT_DOUBLE_EQ(sum.kind_ms[static_cast<std::size_t>(KernelKind::gemm)], 0.150);
    EXPECT_DOUBLE_EQ(sum.kind_calls[static_cast<std::size_t>(KernelKind::norm)], 1);
    ASSERT_EQ(sum.kernels.size(), 3u);
    EXPECT_EQ(sum.kernels[0].name, "nvjet_a");
    EXPECT_EQ(sum.kernels[0].grid[0], 8);
    EXPECT_DOUBLE_EQ(sum.kernels[1].ms, 0.050);
    const std::vector<KernelTime> names = sum.by_name();
    ASSERT_EQ(names.size(), 2u);
    EXPECT_DOUBLE_EQ(names[0].ms, 0.150);
    EXPECT_DOUBLE_EQ(names[0].calls, 2);
    ASSERT_EQ(sum.gaps.size(), 2u);
    EXPECT_EQ(sum.gaps[0].after, "nvjet_a");
    EXPECT_EQ(sum.gaps[0].before, "norm_kernel<float>");
    EXPECT_DOUBLE_EQ(sum.gaps[0].ms, 0.010);
    EXPECT_DOUBLE_EQ(sum.gaps[0].longest_us, 10);
    EXPECT_DOUBLE_EQ(sum.gaps[1].ms, 0.0025);
}

TEST(KernelSummary, WorkAtTheSameTimeIsBusyOnce) {
    // A copy beside a long kernel, a short kernel wholly inside it, then a gap after the longest end.
    std::vector<DeviceWork> work = {kernel("nvjet_a", 0, 100)};
    work.push_back({DeviceWork::Kind::copy, "copy host to device", 10'000, 60'000, {}, 8, 4096});
    work.push_back(kernel("nvjet_b", 20, 30));
    work.push_back(kernel("nvjet_c", 120, 140));
    const KernelSummary sum = summarize(work, 1);
    EXPECT_DOUBLE_EQ(sum.span_ms, 0.140);
    EXPECT_DOUBLE_EQ(sum.busy_ms, 0.120);
    EXPECT_NEAR(sum.overlap_ms(), 0.060, 1e-12);
    EXPECT_DOUBLE_EQ(sum.kind_ms[static_cast<std::size_t>(KernelKind::copy)], 0.050);
    ASSERT_EQ(sum.gaps.size(), 1u);
    EXPECT_EQ(sum.gaps[0].after, "nvjet_a");
    EXPECT_EQ(sum.gaps[0].before, "nvjet_c");
}

TEST(KernelSummary, NothingTracedIsNothing) {
    const KernelSummary sum = summarize({}, 1);
    EXPECT_EQ(sum.span_ms, 0);
    EXPECT_TRUE(sum.kernels.empty());
}

TEST(KernelTrace, SaysWhyItIsNotReady) {
    const KernelTrace trace;
    EXPECT_EQ(trace.ready(), trace.why_not().empty());
#ifndef TERA_WITH_CUDA
    EXPECT_EQ(trace.why_not(), "this program was built without CUDA");
#endif
}

TEST(ProfileRange, IsHarmlessWhenNobodyListens) {
    const ProfileRange step("step");
    const ProfileRange layer("layer", 7, "forward");
    const ProfileRange numbered("micro-batch", 0);
#ifdef TERA_WITH_CUDA
    EXPECT_EQ(profile::listening(), false);
#endif
}

#ifndef TERA_WITH_CUDA  // with CUDA the range needs a driver

TEST(ProfileWindow, OpensAfterTheFirstAndClosesWithTheLast) {
    ProfileWindow window(2, 4);
    std::string open;
    for (std::int64_t done = 0; done < 6; ++done) {
        window.before_step(done);
        open += window.is_open() ? '#' : '.';
        window.after_step(done + 1);
    }
    EXPECT_EQ(open, "..##..");
}

TEST(ProfileWindow, ClosesOnceWhenTheRunEndsInside) {
    ProfileWindow window(2, 4);
    EXPECT_FALSE(window.close());
    EXPECT_TRUE(window.before_step(2));
    EXPECT_TRUE(window.close());
    EXPECT_FALSE(window.is_open());
    EXPECT_FALSE(window.close());
}

TEST(ProfileWindow, OpensLateIfTheFirstStepsWereSkipped) {
    ProfileWindow window(2, 4);
    EXPECT_TRUE(window.before_step(3));
    EXPECT_FALSE(window.before_step(3));
    EXPECT_TRUE(window.after_step(7));
    EXPECT_FALSE(window.before_step(7));
}

#endif

TEST(Bench, PeaksAreThoseOfTheMakersBoards) {
    EXPECT_EQ(peak_bf16_tflops("NVIDIA H200"), 989);
    EXPECT_EQ(peak_bf16_tflops("NVIDIA H100 80GB HBM3"), 989);
    EXPECT_EQ(peak_bf16_tflops("NVIDIA H100 PCIe"), 756);
    EXPECT_EQ(peak_bf16_tflops("NVIDIA H200 NVL"), 835);
    EXPECT_EQ(peak_bf16_tflops("NVIDIA A100-SXM4-80GB"), 312);
    EXPECT_EQ(peak_bf16_tflops("NVIDIA RTX A1000"), 0);
}

TEST(ProfileWindow, NeverOpensUnasked) {
    ProfileWindow window;
    EXPECT_FALSE(window.before_step(0));
    EXPECT_FALSE(window.after_step(1));
}

}  // namespace
}  // namespace tera
