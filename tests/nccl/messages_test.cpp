// Messages between ranks that share a GPU.
#include "core/transfer.h"
#include "nccl/gpu_rank.h"
#include "ops/convert.h"

namespace tera::test {
namespace {

float value(int message, std::int64_t i) { return static_cast<float>(message * 1000 + i % 997); }

/// Rank 0 sends `messages` of `count`, rank 1 looks at them; every one that `ahead` names is expected first.
void exchange(GpuRank& rank, int messages, std::int64_t count, const std::function<bool(int)>& ahead) {
    connect_mail(rank, count, true);
    const Tensor work = rank.values(1 << 20);
    std::vector<float> host(static_cast<std::size_t>(count));
    for (int m = 0; m < messages; ++m) {
        ArenaScope scope(rank.arena);
        Tensor message = rank.values(count);
        if (rank.number() == 0) {
            for (std::int64_t i = 0; i < count; ++i) host[static_cast<std::size_t>(i)] = value(m, i);
            copy_from_host(rank.exec, message, host.data());
            rank.all->send(rank.exec, message, 1);
        } else {
            if (ahead(m)) rank.all->expect(rank.exec, DType::f32, message.shape, 0);
            for (int i = 0; i < 10; ++i) ops::fill_zero(rank.exec, work);
            rank.all->recv(rank.exec, message, 0);
            copy_to_host(rank.exec, host.data(), message);
            for (std::int64_t i = 0; i < count; ++i) {
                if (host[static_cast<std::size_t>(i)] != value(m, i)) throw Error(cat("message ", m, " element ", i));
            }
        }
    }
}

TEST(NcclMessages, come_in_order_whether_they_are_expected_or_not) {
    NEED_GPU();
    constexpr std::int64_t large = 8 << 20;  // more than fits into NCCL's own buffers
    for (const std::int64_t count : {std::int64_t{5}, large}) {
        const auto ends = run_on_gpu(2, [&](GpuRank& rank) {
            exchange(rank, 9, count, [](int m) { return m % 3 != 0; });
            rank.all->barrier();
        });
        for (const RankEnd& end : ends) EXPECT_EQ(end.code, 0) << end.said;
    }
}

TEST(NcclMessages, that_are_expected_and_never_come_are_named) {
    NEED_GPU();
    const auto ends = run_on_gpu(2, [](GpuRank& rank) {
        exchange(rank, 3, 1000, [](int) { return true; });
        if (rank.number() == 1) rank.all->expect(rank.exec, DType::f32, {1000}, 0);
        if (rank.number() == 1) rank.all->recv(rank.exec, rank.values(1000), 0);
    });
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 1) << end.said;
    EXPECT_NE(ends[0].said.find("in message of 1000 f32 over 2 ranks"), std::string::npos) << ends[0].said;
}

}  // namespace
}  // namespace tera::test
