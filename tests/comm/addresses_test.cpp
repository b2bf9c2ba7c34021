// Where ranks that are processes find each other.
#include <gtest/gtest.h>

#include <thread>

#include "comm/socket_transport.h"
#include "support/process_ranks.h"

namespace tera {
namespace {

/// A meeting of threads; each reaches rank 0 by an address of its own.
std::vector<Meeting> meet(const std::vector<std::string>& addresses) {
    std::vector<Meeting> meetings(addresses.size());
    std::vector<std::thread> threads;
    const int port = test::free_port(), size = static_cast<int>(addresses.size());
    for (int r = 0; r < size; ++r) {
        threads.emplace_back([&, r] {
            const std::size_t i = static_cast<std::size_t>(r);
            WatchSettings settings;
            settings.data_port = 1000 + r;
            meetings[i] = come_together({r, size, r, Launcher::variables, addresses[i], port}, settings);
        });
    }
    for (std::thread& thread : threads) thread.join();
    return meetings;
}

TEST(Addresses, whoever_rank_0_sees_on_its_own_machine_is_where_rank_0_is) {
    const auto meetings = meet({"no-name-of-this-machine.invalid", "127.0.0.2", "127.0.0.3"});
    EXPECT_EQ(meetings[0].peers[1].address, "127.0.0.1");
    for (const Peer& peer : meetings[1].peers) EXPECT_EQ(peer.address, "127.0.0.2");
    for (const Peer& peer : meetings[2].peers) EXPECT_EQ(peer.address, "127.0.0.3");
    for (const Meeting& meeting : meetings) {
        for (int r = 0; r < 3; ++r) EXPECT_EQ(meeting.peers[static_cast<std::size_t>(r)].port, 1000 + r);
    }
}

TEST(Addresses, of_other_machines_stay_as_rank_0_saw_them) {
    EXPECT_EQ(reachable_address("10.0.0.8", "10.0.0.7"), "10.0.0.8");
    EXPECT_EQ(reachable_address("127.0.0.1", "10.0.0.7"), "10.0.0.7");
    EXPECT_EQ(reachable_address("127.0.1.1", "10.0.0.7"), "10.0.0.7");
    EXPECT_EQ(reachable_address("::1", "fd00::7"), "fd00::7");
}

TEST(Addresses, of_a_rank_that_cannot_be_reached_are_named) {
    const int nobody = test::free_port(), port = test::free_port();
    const auto rank = [&](int r) {
        WatchSettings settings;
        settings.data_port = nobody;
        settings.silent_s = 0.5;
        settings.beat_s = 0.1;
        settings.leave = [](const std::string&, int) {};
        Watch watch({r, 2, r, Launcher::variables, "127.0.0.1", port}, settings);
        if (r == 0) return;
        int own = 0;
        const auto transport = make_socket_transport(listen_on(own), r, watch, std::chrono::milliseconds(20));
        try {
            transport->send(0, {}, nullptr);
            ADD_FAILURE() << "it was sent";
        } catch (const Error& e) {
            EXPECT_NE(std::string(e.what()).find("127.0.0.1:" + std::to_string(nobody)), std::string::npos) << e.what();
        }
    };
    std::thread other([&] { rank(0); });
    rank(1);
    other.join();
}

TEST(Meeting, tokens_differ) {
    const auto meetings = meet({"127.0.0.1", "127.0.0.1"});
    EXPECT_NE(meetings[0].peers[0].token, meetings[0].peers[1].token);
    for (const std::size_t r : {0u, 1u}) EXPECT_EQ(meetings[0].peers[r].token, meetings[1].peers[r].token);
}

}  // namespace
}  // namespace tera
