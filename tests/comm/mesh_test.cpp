#include "comm/mesh.h"

#include <gtest/gtest.h>

#include "comm/thread_comm.h"

namespace tera {
namespace {

using Groups = std::vector<std::vector<int>>;

// The example of Megatron's parallel_state: 16 ranks, TP 2, PP 4, so DP 2.
TEST(Mesh, megatron_example) {
    const MeshShape m{.tp = 2, .dp = 2, .pp = 4};
    EXPECT_EQ(all_groups(m, {Axis::tp}),
              (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
    EXPECT_EQ(all_groups(m, {Axis::dp}),
              (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
    EXPECT_EQ(all_groups(m, {Axis::pp}), (Groups{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
    EXPECT_EQ(all_groups(m, {Axis::tp, Axis::pp}), (Groups{{0, 1, 4, 5, 8, 9, 12, 13}, {2, 3, 6, 7, 10, 11, 14, 15}}));
    EXPECT_EQ(embedding_group(m, 1), (std::vector<int>{1, 13}));
    EXPECT_EQ(embedding_group(m, 13), (std::vector<int>{1, 13}));
    EXPECT_TRUE(embedding_group(m, 5).empty());
}

TEST(Mesh, pp_before_dp) {
    const MeshShape m{.tp = 2, .dp = 2, .pp = 2, .pp_before_dp = true};
    EXPECT_EQ(all_groups(m, {Axis::pp}), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
    EXPECT_EQ(all_groups(m, {Axis::dp}), (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
    EXPECT_EQ(all_groups(m, {Axis::tp, Axis::pp}), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

TEST(Mesh, context_ranks_stand_between_tensor_and_data) {
    const MeshShape m{.tp = 2, .cp = 2, .dp = 2};
    EXPECT_EQ(all_groups(m, {Axis::cp}), (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
    EXPECT_EQ(all_groups(m, {Axis::dp, Axis::cp}), (Groups{{0, 2, 4, 6}, {1, 3, 5, 7}}));
    EXPECT_EQ(embedding_group(m, 3), (std::vector<int>{3}));
}

TEST(Mesh, places_and_ranks_are_inverse) {
    for (const bool swapped : {false, true}) {
        const MeshShape m{.tp = 2, .cp = 3, .dp = 2, .pp = 4, .pp_before_dp = swapped};
        for (int r = 0; r < m.size(); ++r) EXPECT_EQ(rank_at(m, place_of(m, r)), r);
    }
    const MeshShape m{.tp = 2, .cp = 3, .dp = 5, .pp = 4};
    EXPECT_EQ(rank_at(m, {.tp = 1, .cp = 2, .dp = 3, .pp = 2}), 1 + 2 * (2 + 3 * (3 + 5 * 2)));
}

TEST(Mesh, communicators_join_the_right_ranks) {
    const MeshShape shape{.tp = 2, .cp = 2, .dp = 2, .pp = 2};
    run_on_threads(shape.size(), [&](Comm& world) {
        Arena arena;
        ThreadPool pool(1);
        const Exec exec{Device::cpu, &arena, &pool};
        const Mesh mesh(shape, world);
        const auto members_of = [&](Comm& comm) {
            const std::int64_t mine = world.rank();
            std::vector<std::int64_t> all(static_cast<std::size_t>(comm.size()));
            comm.all_gather(exec, tensor_over(&mine, {1}), tensor_over(all.data(), {comm.size()}));
            return std::vector<int>(all.begin(), all.end());
        };
        for (const AxisSet axes : {AxisSet{Axis::tp}, AxisSet{Axis::cp}, AxisSet{Axis::dp}, AxisSet{Axis::pp},
                                   AxisSet{Axis::dp, Axis::cp}, AxisSet{Axis::tp, Axis::pp}})
            EXPECT_EQ(members_of(mesh.over(axes)), group_over(shape, axes, world.rank()));
        EXPECT_EQ(members_of(*mesh.embedding()), embedding_group(shape, world.rank()));
    });
}

TEST(Mesh, one_rank) {
    const Mesh mesh;
    EXPECT_EQ(mesh.over({Axis::dp, Axis::cp}).size(), 1);
    EXPECT_EQ(mesh.embedding(), nullptr);
    EXPECT_TRUE(mesh.first_stage() && mesh.last_stage());
}

}  // namespace
}  // namespace tera
