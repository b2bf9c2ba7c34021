// Ranks that share a GPU and give NCCL calls that do not fit together: found out, named, and all leave.
#include <chrono>
#include <thread>

#include "nccl/gpu_rank.h"

namespace tera::test {
namespace {

void expect_out_of_step(const std::vector<RankEnd>& ends, const std::vector<std::string>& words) {
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 1) << end.said;
    EXPECT_NE(ends[0].said.find("leaving: collectives out of step"), std::string::npos) << ends[0].said;
    for (const std::string& word : words)
        EXPECT_NE(ends[0].said.find(word), std::string::npos) << word << "\n" << ends[0].said;
}

TEST(NcclOutOfStep, calls_that_fit_end_well) {
    NEED_GPU();
    const auto ends = run_on_gpu(4, [](GpuRank& rank) {
        const std::unique_ptr<Comm> pair = rank.all->group(rank.number() < 2 ? std::vector{0, 1} : std::vector{2, 3});
        pair->connect();
        for (int i = 0; i < 50; ++i) rank.all_reduce(i % 2 == 0 ? *pair : *rank.all);
        rank.all->barrier();
        if (rank.number() == 2) std::this_thread::sleep_for(std::chrono::seconds(9));  // works; the others wait for it
        rank.all_reduce(*rank.all);
        rank.all->barrier();
    });
    for (const RankEnd& end : ends) EXPECT_EQ(end.code, 0) << end.said;
}

TEST(NcclOutOfStep, another_call) {
    NEED_GPU();
    expect_out_of_step(run_on_gpu(2,
                                  [](GpuRank& rank) {
                                      if (rank.number() == 1)
                                          rank.all->all_gather(rank.exec, rank.values(500), rank.values(1000));
                                      else
                                          rank.all_reduce(*rank.all);
                                  }),
                       {"of the 2 ranks", "call 21 of that group", "all_reduce of 1000 f32", "all_gather of 500 f32"});
}

TEST(NcclOutOfStep, another_size) {
    NEED_GPU();
    expect_out_of_step(run_on_gpu(2, [](GpuRank& rank) { rank.all_reduce(*rank.all, 1000 + rank.number()); }),
                       {"call 21 of that group"});
}

TEST(NcclOutOfStep, a_call_left_out) {
    NEED_GPU();
    expect_out_of_step(run_on_gpu(4,
                                  [](GpuRank& rank) {
                                      if (rank.number() != 2) rank.all_reduce(*rank.all);
                                  }),
                       {"rank 2 (", "barrier", "step 3, in all_reduce of 1000 f32 over 4 ranks"});
}

TEST(NcclOutOfStep, groups_in_another_order) {
    NEED_GPU();
    expect_out_of_step(run_on_gpu(4,
                                  [](GpuRank& rank) {
                                      std::unique_ptr<Comm> pair;
                                      if (rank.number() < 2) {
                                          pair = rank.all->group({0, 1});
                                          pair->connect();
                                      }
                                      if (rank.number() == 1) rank.all_reduce(*pair, 7);
                                      rank.all_reduce(*rank.all);
                                      if (rank.number() == 0) rank.all_reduce(*pair, 7);
                                      rank.all->barrier();
                                  }),
                       {"rank 1 (", "in all_reduce of 7 f32 over 2 ranks", "in all_reduce of 1000 f32 over 4 ranks"});
}

TEST(NcclOutOfStep, a_message_that_nobody_sends) {
    NEED_GPU();
    const auto ends = run_on_gpu(2, [](GpuRank& rank) {
        connect_mail(rank, 1000);
        for (int i = 0; i < 5; ++i) {
            if (rank.number() == 0) rank.all->send(rank.exec, rank.values(1000), 1);
            if (rank.number() == 1) rank.all->recv(rank.exec, rank.values(1000), 0);
        }
        if (rank.number() == 1) rank.all->recv(rank.exec, rank.values(1000), 0);
    });
    expect_out_of_step(ends, {"in message of 1000 f32 over 2 ranks", "barrier"});
}

TEST(NcclOutOfStep, messages_that_nobody_takes) {
    NEED_GPU();
    constexpr std::int64_t large = 8 << 20;  // small ones fit into NCCL's own buffers
    const auto ends = run_on_gpu(2, [](GpuRank& rank) {
        connect_mail(rank, large);
        const Tensor message = rank.values(large);
        for (int i = 0; i < 5; ++i) {
            if (rank.number() == 0) rank.all->send(rank.exec, message, 1);
        }
    });
    expect_out_of_step(ends, {cat("in message of ", large, " f32 over 2 ranks"), "barrier"});
}

}  // namespace
}  // namespace tera::test
