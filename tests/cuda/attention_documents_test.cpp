// What cuDNN is told of documents, and the log-sum-exp as it has it then.
#include "ops/attention_documents.h"

#include <array>

#include "cuda/cuda_world.h"

namespace tera::test {
namespace {

using namespace ops;

template <class T>
std::vector<T> numbers(CudaWorld& gpu, const Tensor& t) {
    std::vector<T> result(static_cast<std::size_t>(t.numel()));
    copy_to_host(gpu.ctx.temp, result.data(), t);
    return result;
}

TEST(CudaDocuments, begin_in_rows_of_any_width) {
    NEED_GPU();
    CudaWorld gpu;
    AttentionSpec spec{.B = 2, .Sq = 5, .Sk = 5, .H = 1, .G = 1, .K = 8, .scale = 1};
    spec.documents = {3, 5, gpu.up(std::vector<std::int32_t>{0, 5, 1, 2, 5, 3})};
    cuda::RowWidths widths;
    EXPECT_EQ(widths.index_of(24), 0);
    EXPECT_EQ(widths.index_of(7), 1);
    EXPECT_EQ(widths.index_of(24), 0);
    ASSERT_EQ(widths.count, 2);
    const Tensor lengths = gpu.store.tensor(DType::i32, {4}), starts = gpu.store.tensor(DType::i64, {2, 5});
    cuda::document_places(gpu.ctx.temp, spec, widths, lengths, starts);
    EXPECT_EQ(numbers<std::int32_t>(gpu, lengths), (std::vector<std::int32_t>{5, 2, 3, 0}));
    EXPECT_EQ(numbers<std::int64_t>(gpu, starts), (std::vector<std::int64_t>{0, 24, 120, 240, 240, 0, 7, 35, 70, 70}));
    gpu.expect_sentinels();
}

TEST(CudaDocuments, log_sums_turn_and_turn_back) {
    NEED_GPU();
    CudaWorld gpu;
    World w;
    for (const auto [B, H, S] : {std::array<std::int64_t, 3>{1, 1, 1}, {2, 3, 70}, {5, 13, 33}, {1, 32, 64}}) {
        const Tensor host = w.random(DType::f32, {B, H, S}), lse = gpu.up(host);
        const Tensor rows = gpu.store.tensor(DType::f32, {S * B, H}), back = gpu.store.tensor(DType::f32, {B, H, S});
        cuda::lse_to_rows(gpu.ctx.temp, rows, lse);
        const std::vector<double> expected = values(host), turned = gpu.down(rows);
        for (std::int64_t b = 0; b < B; ++b)
            for (std::int64_t h = 0; h < H; ++h)
                for (std::int64_t s = 0; s < S; ++s)
                    ASSERT_EQ(turned[static_cast<std::size_t>((s * B + b) * H + h)],
                              expected[static_cast<std::size_t>((b * H + h) * S + s)]);
        cuda::lse_from_rows(gpu.ctx.temp, back, rows);
        EXPECT_EQ(gpu.down(back), expected);
    }
    gpu.expect_sentinels();
}

}  // namespace
}  // namespace tera::test
