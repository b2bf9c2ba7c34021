// Which values are gathered when: all after the update, or buffer after buffer.
#include "parallel/grad_sync.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "comm/thread_comm.h"

namespace tera {
namespace {

/// Three parameters on one of two ranks: rank 0 owns the first and the third, which shares a buffer with the second.
struct Rank {
    Arena arena;
    ThreadPool pool{1};
    Exec exec{Device::cpu, &arena, &pool};
    Mesh mesh;
    std::vector<std::unique_ptr<Param>> params;
    std::unique_ptr<GradSync> sync;

    Rank(Comm& world, bool in_update) : mesh({.dp = 2}, world) {
        std::vector<Param*> list;
        for (const char* name : {"first", "second", "third"}) {
            params.push_back(
                std::make_unique<Param>(Param{name, Shape{60}, {}, AxisSet{Axis::dp, Axis::cp}, true, Init{}}));
            list.push_back(params.back().get());
        }
        const GradSync::Settings settings{.distributed_optimizer = true,
                                          .overlap_reduce = true,
                                          .overlap_gather = true,
                                          .gather_in_update = in_update,
                                          .bucket = 100};
        sync = std::make_unique<GradSync>(
            mesh, list, allocate_params(list, arena, DType::f64, DType::f64, GradSync::cut(mesh.shape(), settings)),
            settings, Engine(), exec);
        for (Param* p : list) fill(p->value, 0), fill(p->grad, 1);
        for (const ParamSlice& s : sync->owned()) fill(s.value(), world.rank() + 1);
    }
    static void fill(const Tensor& t, double x) { std::fill_n(t.ptr<double>(), t.numel(), x); }
    /// Of each parameter: are all its values here, are its gradients zero?
    std::string state() const {
        std::string text;
        for (const auto& p : params) {
            const double* const v = p->value.ptr<double>();
            const double* const g = p->grad.ptr<double>();
            text += std::count(v, v + 60, 0.0) == 0 ? "whole" : "part";
            text += std::count(g, g + 60, 0.0) == 60 ? " " : "+grad ";
        }
        return text;
    }
    /// Groups of the owned slices by parameter.
    std::string groups() const {
        std::string text;
        for (std::size_t i = 0; i < sync->owned().size(); ++i)
            text += sync->owned()[i].param->name + " " + std::to_string(sync->groups().of[i]) + " ";
        return text;
    }
};

TEST(GradSync, AllIsGatheredAfterTheUpdate) {
    run_on_threads(2, [](Comm& world) {
        Rank rank(world, false);
        ASSERT_EQ(rank.sync->groups().count, 1);
        rank.sync->updated(rank.exec, 0);
        EXPECT_EQ(rank.state(), "whole whole whole ");
    });
}

TEST(GradSync, ABufferIsGatheredWhenItIsUpdated) {
    run_on_threads(2, [](Comm& world) {
        Rank rank(world, true);
        ASSERT_EQ(rank.sync->groups().count, 2);
        const bool first = world.rank() == 0;
        EXPECT_EQ(rank.groups(), first ? "first 0 third 1 " : "second 1 ");
        EXPECT_EQ(rank.state(), first ? "whole+grad part+grad whole+grad " : "part+grad whole+grad part+grad ");
        rank.sync->updated(rank.exec, 0);
        EXPECT_EQ(rank.state(), first ? "whole part+grad whole+grad " : "whole whole+grad part+grad ");
        rank.sync->updated(rank.exec, 1);
        EXPECT_EQ(rank.state(), "whole whole whole ");
    });
}

}  // namespace
}  // namespace tera
