// Who else may knock at the data port of a rank that is a process.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/socket_transport.h"
#include "support/process_ranks.h"
#include "support/rank_memory.h"

namespace tera {
namespace {

using test::ProcessRanks;
using test::RankEnd;
using test::RankMemory;

Clock::time_point soon() { return Clock::now() + std::chrono::seconds(10); }

/// Ranks that go on while somebody is connected with the data port of rank 2.
void train_beside(const std::function<void(ProcessWorld&, Socket)>& stranger) {
    const auto body = [&](ProcessWorld& world) {
        const RankMemory m;
        Comm& comm = world.comm();
        Tensor x = m.exec.tensor(DType::i32, {30000});
        const auto sums_are_right = [&] {
            std::fill_n(x.ptr<std::int32_t>(), x.numel(), comm.rank() + 1);
            comm.all_reduce(m.exec, x, Reduce::sum);
            for (std::int64_t i = 0; i < x.numel(); ++i) ASSERT_EQ(x.ptr<std::int32_t>()[i], 6);
        };
        sums_are_right();
        if (comm.rank() == 1) {
            const Peer& peer = world.watch().peers()[2];
            stranger(world, connect_to(peer.address, peer.port, soon()));
        }
        for (int k = 0; k < 3; ++k) sums_are_right();
    };
    WatchSettings settings;
    settings.timeout_s = 20;
    for (const RankEnd& end : ProcessRanks(3, body, settings).wait()) EXPECT_EQ(end.code, 0) << end.said;
}

void write(const Socket& socket, const std::string& bytes) {
    ASSERT_TRUE(socket.write_all(bytes.data(), bytes.size(), soon()));
}

void expect_hung_up(const Socket& socket) {
    char byte = 0;
    ASSERT_TRUE(wait_for(socket, false, soon()));
    EXPECT_EQ(socket.read_some(&byte, 1), -1);
}

TEST(Strangers, who_hang_up_early_change_nothing) {
    train_beside([](ProcessWorld&, Socket socket) {
        write(socket, std::string(4, '\0'));
        socket.close();
    });
}

TEST(Strangers, who_send_rubbish_are_hung_up_on) {
    train_beside([](ProcessWorld&, Socket socket) {
        write(socket, std::string(4, '\0') + std::string(40, '\xff'));
        expect_hung_up(socket);
    });
}

std::string bytes_of(const Greeting& greeting) { return {reinterpret_cast<const char*>(&greeting), sizeof greeting}; }

TEST(Strangers, of_another_run_are_hung_up_on) {
    train_beside([](ProcessWorld& world, Socket socket) {
        write(socket, bytes_of({.token = world.watch().peers()[2].token + 1, .rank = 0}));
        expect_hung_up(socket);
    });
}

TEST(Strangers, who_say_they_are_a_rank_that_is_there_are_hung_up_on) {
    train_beside([](ProcessWorld& world, Socket socket) {
        write(socket, bytes_of({.token = world.watch().peers()[2].token, .rank = 1}));
        expect_hung_up(socket);
    });
}

TEST(Strangers, a_message_that_cannot_be_ends_the_run_with_a_word) {
    const auto body = [](ProcessWorld& world) {
        const RankMemory m;
        if (world.comm().rank() == 1) {
            const Peer& peer = world.watch().peers()[0];
            const Socket socket = connect_to(peer.address, peer.port, soon());
            write(socket, bytes_of({.token = peer.token, .rank = 1}) + std::string(sizeof(FrameHeader), '\xff'));
            world.comm().recv(m.exec, m.zeros(DType::f32, 5), 0);
        }
        world.comm().recv(m.exec, m.zeros(DType::f32, 5), 1);
    };
    const auto ends = ProcessRanks(2, body).wait();
    EXPECT_EQ(ends[0].code, 3);
    EXPECT_NE(ends[0].said.find("what came from rank 1 ("), std::string::npos) << ends[0].said;
}

}  // namespace
}  // namespace tera
