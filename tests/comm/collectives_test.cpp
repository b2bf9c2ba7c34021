// Collectives on integer-valued data, bit for bit, on every kind of rank.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "comm/thread_comm.h"
#include "support/process_ranks.h"
#include "support/rank_memory.h"

namespace tera {
namespace {

using test::RankMemory;

/// Element i of rank r: small integers, so that every format holds them and their sums.
int value(int rank, std::int64_t i) { return static_cast<int>((i * 7 + rank * 3) % 11) - 5; }

template <class T>
Tensor filled(const RankMemory& m, int rank, std::int64_t n) {
    Tensor t = m.exec.tensor(dtype_of<T>, {n});
    for (std::int64_t i = 0; i < n; ++i) t.ptr<T>()[i] = static_cast<T>(static_cast<float>(value(rank, i)));
    return t;
}

template <class T>
double at(const Tensor& t, std::int64_t i) {
    return static_cast<double>(static_cast<float>(t.ptr<T>()[i]));
}

template <class T>
void check_reductions(Comm& comm, std::int64_t n) {
    const int ranks = comm.size();
    const RankMemory m;
    Tensor sum = filled<T>(m, comm.rank(), n), max = filled<T>(m, comm.rank(), n);
    comm.all_reduce(m.exec, sum, Reduce::sum);
    comm.all_reduce(m.exec, max, Reduce::max);
    Tensor in = filled<T>(m, comm.rank(), n * ranks), piece = m.exec.tensor(dtype_of<T>, {n});
    comm.reduce_scatter(m.exec, in, piece);
    comm.reduce_scatter(m.exec, in, in.slice(n * comm.rank(), n));  // in place
    for (std::int64_t i = 0; i < n; ++i) {
        int s = 0, top = -100, scattered = 0;
        for (int r = 0; r < ranks; ++r) {
            s += value(r, i);
            top = std::max(top, value(r, i));
            scattered += value(r, n * comm.rank() + i);
        }
        ASSERT_EQ(at<T>(sum, i), s);
        ASSERT_EQ(at<T>(max, i), top);
        ASSERT_EQ(at<T>(piece, i), scattered);
        ASSERT_EQ(at<T>(in, n * comm.rank() + i), scattered);
    }
}

template <class T>
void check_copies(Comm& comm, std::int64_t n) {
    const int ranks = comm.size();
    const RankMemory m;
    Tensor in = filled<T>(m, comm.rank(), n), all = m.exec.tensor(dtype_of<T>, {ranks, n});
    comm.all_gather(m.exec, in, all);
    Tensor in_place = m.exec.tensor(dtype_of<T>, {ranks, n});
    std::memcpy(in_place.slice(comm.rank(), 1).data, in.data, in.bytes());
    comm.all_gather(m.exec, in_place.slice(comm.rank(), 1), in_place);
    Tensor sent = filled<T>(m, comm.rank(), n);
    comm.broadcast(m.exec, sent, ranks - 1);
    Tensor shifted = m.exec.tensor(dtype_of<T>, {n}), twice = m.exec.tensor(dtype_of<T>, {n});
    comm.shift(m.exec, in, shifted);
    comm.shift(m.exec, shifted, twice);
    for (std::int64_t i = 0; i < n; ++i) {
        for (int r = 0; r < ranks; ++r) {
            ASSERT_EQ(at<T>(all, r * n + i), value(r, i));
            ASSERT_EQ(at<T>(in_place, r * n + i), value(r, i));
        }
        ASSERT_EQ(at<T>(sent, i), value(ranks - 1, i));
        ASSERT_EQ(at<T>(shifted, i), value((comm.rank() + ranks - 1) % ranks, i));
        ASSERT_EQ(at<T>(twice, i), value((comm.rank() + 2 * ranks - 2) % ranks, i));
    }
}

/// Every kind of rank that a CPU has.
struct RankKind {
    const char* name;
    void (*run)(int size, const std::function<void(Comm&)>& f);
};
void PrintTo(const RankKind& kind, std::ostream* out) { *out << kind.name; }

class Collectives : public ::testing::TestWithParam<RankKind> {
  protected:
    void run(int ranks, const std::function<void(Comm&)>& f) { GetParam().run(ranks, f); }
};

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives,
                         ::testing::Values(RankKind{"threads", &run_on_threads},
                                           RankKind{"processes", &test::run_on_processes}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(Collectives, reductions_of_integers_are_exact) {
    for (const int ranks : {1, 2, 3, 4, 7}) {
        run(ranks, [](Comm& comm) {
            for (const std::int64_t n : {std::int64_t{1}, std::int64_t{5}, std::int64_t{64}}) {
                check_reductions<double>(comm, n);
                check_reductions<float>(comm, n);
                check_reductions<bf16_t>(comm, n);
                check_reductions<f16_t>(comm, n);
                check_reductions<std::int64_t>(comm, n);
                check_reductions<std::int32_t>(comm, n);
            }
        });
    }
}

TEST_P(Collectives, copies_are_exact) {
    for (const int ranks : {1, 2, 3, 5}) {
        run(ranks, [](Comm& comm) {
            check_copies<double>(comm, 9);
            check_copies<bf16_t>(comm, 64);
            check_copies<std::int32_t>(comm, 1);
        });
    }
}

TEST_P(Collectives, much_data_gets_through) {
    run(3, [](Comm& comm) {
        check_reductions<float>(comm, 1 << 20);
        check_copies<float>(comm, 1 << 20);
    });
}

TEST(CollectivesOfThreads, sums_do_not_depend_on_who_comes_first) {
    // Numbers whose sum depends on the order of additions.
    const auto run = [](int late) {
        float result = 0;
        run_on_threads(3, [&](Comm& comm) {
            const RankMemory m;
            float x[] = {1e8f, 1.0f, -1e8f};
            Tensor data = tensor_over(&x[comm.rank()], {1});
            if (comm.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(5));
            comm.all_reduce(m.exec, data, Reduce::sum);
            if (comm.rank() == 1) result = x[1];
        });
        return result;
    };
    const float first = run(0);
    EXPECT_EQ(run(1), first);
    EXPECT_EQ(run(2), first);
}

TEST_P(Collectives, sums_are_taken_in_the_order_of_the_ranks) {
    const auto x = [](int rank, std::int64_t i) {
        return std::ldexp(static_cast<float>(value(rank, i)) / 3, rank * 5);
    };
    run(5, [&](Comm& comm) {
        const RankMemory m;
        for (const std::int64_t n : {std::int64_t{5}, std::int64_t{20000}}) {  // floats: on both sides of what is small
            Tensor all = m.exec.tensor(DType::f32, {n}), scattered = m.exec.tensor(DType::f32, {n / 5});
            for (std::int64_t i = 0; i < n; ++i) all.ptr<float>()[i] = x(comm.rank(), i);
            comm.reduce_scatter(m.exec, all, scattered);
            comm.all_reduce(m.exec, all, Reduce::sum);
            for (std::int64_t i = 0; i < n; ++i) {
                float sum = x(0, i);
                for (int r = 1; r < 5; ++r) sum += x(r, i);
                ASSERT_EQ(all.ptr<float>()[i], sum) << i << " of " << n;
                const std::int64_t here = i - n / 5 * comm.rank();
                if (here < 0 || here >= n / 5) continue;
                ASSERT_EQ(scattered.ptr<float>()[here], sum) << i << " of " << n;
            }
        }
    });
}

TEST_P(Collectives, messages_arrive_in_order_and_do_not_wait) {
    run(3, [&](Comm& comm) {
        const RankMemory m;
        const int next = (comm.rank() + 1) % 3, before = (comm.rank() + 2) % 3;
        for (int k = 0; k < 4; ++k) comm.send(m.exec, filled<double>(m, comm.rank() * 4 + k, 6), next);
        comm.barrier();  // collectives pass them by
        for (int k = 0; k < 4; ++k) {
            Tensor got = m.exec.tensor(DType::f64, {6});
            comm.recv(m.exec, got, before);
            for (std::int64_t i = 0; i < 6; ++i) ASSERT_EQ(at<double>(got, i), value(before * 4 + k, i));
        }
    });
}

TEST_P(Collectives, messages_may_be_expected) {
    run(2, [&](Comm& comm) {
        const RankMemory m;
        const int other = 1 - comm.rank();
        Tensor got = m.exec.tensor(DType::f64, {6});
        for (int k = 0; k < 4; ++k) {
            if (k % 2 == 0) comm.expect(m.exec, DType::f64, {6}, other);
            comm.send(m.exec, filled<double>(m, comm.rank() * 4 + k, 6), other);
            comm.recv(m.exec, got, other);
            for (std::int64_t i = 0; i < 6; ++i) ASSERT_EQ(at<double>(got, i), value(other * 4 + k, i));
        }
        comm.expect(m.exec, DType::f64, {7}, other);
        EXPECT_THROW(comm.expect(m.exec, DType::f64, {7}, other), Error) << "two at a time";
        EXPECT_THROW(comm.recv(m.exec, got, other), Error) << "another size";
    });
}

TEST_P(Collectives, groups_are_worlds_of_their_own) {
    run(4, [&](Comm& world) {
        const RankMemory m;
        const bool even = world.rank() % 2 == 0;
        const auto half = world.group(even ? std::vector<int>{0, 2} : std::vector<int>{3, 1});
        EXPECT_EQ(half->size(), 2);
        EXPECT_EQ(half->rank(), even ? world.rank() / 2 : (world.rank() == 3 ? 0 : 1));
        for (int k = 0; k < (even ? 3 : 5); ++k) {  // the halves need not keep step with each other
            std::int64_t x = world.rank();
            half->all_reduce(m.exec, tensor_over(&x, {1}), Reduce::sum);
            EXPECT_EQ(x, even ? 2 : 4);
        }
        world.barrier();
    });
}

TEST_P(Collectives, two_groups_of_the_same_ranks_do_not_mix) {
    run(2, [&](Comm& world) {
        const RankMemory m;
        const auto one = world.group({0, 1}), two = world.group({0, 1});
        const int other = 1 - world.rank();
        one->send(m.exec, filled<float>(m, 1, 4), other);
        two->send(m.exec, filled<float>(m, 2, 4), other);
        Tensor got = m.exec.tensor(DType::f32, {4});
        two->recv(m.exec, got, other);
        EXPECT_EQ(at<float>(got, 0), value(2, 0));
        one->recv(m.exec, got, other);
        EXPECT_EQ(at<float>(got, 0), value(1, 0));
        for (int k = 0; k < 3; ++k) one->all_reduce(m.exec, got, Reduce::sum);
        two->barrier();
    });
}

TEST_P(Collectives, what_is_sent_is_counted) {
    run(3, [](Comm& comm) {
        const RankMemory m;
        const Tensor six = filled<float>(m, 0, 6), two = filled<float>(m, 0, 2);
        const auto sent = [&](const auto& call) {
            comm.reset_traffic();
            call();
            EXPECT_EQ(comm.traffic().calls, 1);
            return comm.traffic().bytes;
        };
        EXPECT_EQ(sent([&] { comm.all_reduce(m.exec, six, Reduce::sum); }), 32);  // 2 · 24 bytes · 2/3
        EXPECT_EQ(sent([&] { comm.all_gather(m.exec, two, six); }), 16);          // 8 bytes to two others
        EXPECT_EQ(sent([&] { comm.reduce_scatter(m.exec, six, two); }), 16);
        EXPECT_EQ(sent([&] { comm.broadcast(m.exec, six, 1); }), 16);  // 24 bytes to two others, shared by three
        EXPECT_EQ(sent([&] { comm.shift(m.exec, two, filled<float>(m, 0, 2)); }), 8);
        EXPECT_EQ(sent([&] { comm.send(m.exec, six, (comm.rank() + 1) % 3); }), 24);
        comm.reset_traffic();
        comm.recv(m.exec, six, (comm.rank() + 2) % 3);
        EXPECT_EQ(comm.traffic(), Traffic{});
    });
}

TEST(CollectivesOfThreads, a_dry_run_passes_over_them) {
    run_on_threads(2, [&](Comm& comm) {
        if (comm.rank() == 1) return;
        Arena counting(Arena::Kind::counting);
        ThreadPool pool(1);
        const Exec exec{Device::cpu, &counting, &pool};
        Tensor x = exec.tensor(DType::f32, {4}), two = exec.tensor(DType::f32, {8});
        comm.all_reduce(exec, x, Reduce::sum);
        comm.all_gather(exec, x, two);
        comm.reduce_scatter(exec, two, x);
        comm.broadcast(exec, x, 1);
        comm.shift(exec, x, two.slice(0, 4));
        comm.send(exec, x, 1);
        comm.recv(exec, x, 1);
    });
}

}  // namespace
}  // namespace tera
