// Where a process stands, from what launchers set.
#include "comm/rendezvous.h"

#include <gtest/gtest.h>

#include "comm/tcp.h"

#include <map>
#include <set>

#include "support/expect_usage_error.h"

namespace tera {
namespace {

using Set = std::map<std::string, std::string>;

RankPlace place_with(const Set& set) {
    return find_rank_place([&](const char* name) {
        const auto at = set.find(name);
        return at == set.end() ? nullptr : at->second.c_str();
    });
}

TEST(Rendezvous, nobody_launched_us) {
    const RankPlace p = place_with({});
    EXPECT_EQ(p.rank, 0);
    EXPECT_EQ(p.size, 1);
    EXPECT_EQ(p.launcher, Launcher::none);
}

TEST(Rendezvous, torchrun) {
    const RankPlace p = place_with({{"RANK", "9"},
                                    {"WORLD_SIZE", "16"},
                                    {"LOCAL_RANK", "1"},
                                    {"MASTER_ADDR", "node0"},
                                    {"MASTER_PORT", "29500"},
                                    {"SLURM_PROCID", "1"},  // one task per node, torchrun below
                                    {"SLURM_STEP_NUM_TASKS", "2"}});
    EXPECT_EQ(p.rank, 9);
    EXPECT_EQ(p.size, 16);
    EXPECT_EQ(p.local_rank, 1);
    EXPECT_EQ(p.address, "node0");
    EXPECT_EQ(p.port, 29500);
    EXPECT_EQ(p.launcher, Launcher::variables);
}

/// Where torchrun's own store has the port, as it has been since 1.9, rank 0 listens at another.
TEST(Rendezvous, torchrun_keeps_its_port) {
    const auto port = [](const char* master, const char* store) {
        return place_with({{"RANK", "1"},
                           {"WORLD_SIZE", "2"},
                           {"MASTER_ADDR", "localhost"},
                           {"MASTER_PORT", master},
                           {"TORCHELASTIC_USE_AGENT_STORE", store}})
            .port;
    };
    EXPECT_EQ(port("29500", "True"), 30500);
    EXPECT_EQ(port("29500", "False"), 29500);
    EXPECT_EQ(port("64535", "True"), 65535);
    EXPECT_EQ(port("64536", "True"), 63536);
}

TEST(Rendezvous, an_address_may_stand_in_brackets) {
    for (const char* address : {"::1", "[::1]"})
        EXPECT_EQ(
            place_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", address}, {"MASTER_PORT", "1"}}).address,
            "::1");
    EXPECT_EQ(place_with({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "[]"}, {"MASTER_PORT", "1"}}).address,
              "[]");
}

TEST(Rendezvous, a_socket_that_listens_already) {
    int port = 0;
    Socket made = listen_on(port);
    EXPECT_FALSE(left_listening(-1, port));
    EXPECT_FALSE(left_listening(0, port)) << "no socket at all";
    EXPECT_FALSE(left_listening(made.fd(), port + 1)) << "of another port";
    const int fd = made.release();
    const Socket taken = left_listening(fd, port);
    ASSERT_EQ(taken.fd(), fd);
    const auto soon = Clock::now() + std::chrono::seconds(5);
    const Socket caller = connect_to("127.0.0.1", port, soon);
    ASSERT_TRUE(caller);
    ASSERT_TRUE(wait_for(taken, false, soon));
    EXPECT_TRUE(accept_from(taken));
    EXPECT_FALSE(left_listening(caller.fd(), port)) << "it does not listen";
}

TEST(Rendezvous, srun) {
    const Set step{{"SLURM_PROCID", "5"},      {"SLURM_STEP_NUM_TASKS", "8"},
                   {"SLURM_LOCALID", "1"},     {"SLURM_STEP_NODELIST", "nid[001003-001006,001009]"},
                   {"SLURM_JOB_ID", "123456"}, {"SLURM_STEP_ID", "0"}};
    const RankPlace p = place_with(step);
    EXPECT_EQ(p.rank, 5);
    EXPECT_EQ(p.size, 8);
    EXPECT_EQ(p.address, "nid001003");
    EXPECT_GE(p.port, 20000);
    EXPECT_LT(p.port, 40000);
    Set told = step;
    told["MASTER_ADDR"] = "10.0.0.7";
    told["MASTER_PORT"] = "6000";
    EXPECT_EQ(place_with(told).address, "10.0.0.7");
    EXPECT_EQ(place_with(told).port, 6000);
}

TEST(Rendezvous, srun_beside_a_world_size) {
    const auto place = [](const char* world_size) {
        return place_with({{"WORLD_SIZE", world_size},
                           {"MASTER_ADDR", "node0"},
                           {"MASTER_PORT", "6000"},
                           {"SLURM_PROCID", "3"},
                           {"SLURM_STEP_NUM_TASKS", "8"},
                           {"SLURM_LOCALID", "1"}});
    };
    const RankPlace p = place("8");
    EXPECT_EQ(p.rank, 3);
    EXPECT_EQ(p.size, 8);
    EXPECT_EQ(p.local_rank, 1);
    EXPECT_EQ(p.launcher, Launcher::slurm);
    EXPECT_EQ(p.port, 6000);
    expect_usage_error([&] { place("2"); }, {"WORLD_SIZE is 2", "SLURM_STEP_NUM_TASKS is 8"});
}

TEST(Rendezvous, srun_that_speaks_pmi_is_srun) {
    Set step{{"SLURM_PROCID", "5"},
             {"SLURM_STEP_NUM_TASKS", "8"},
             {"SLURM_LOCALID", "1"},
             {"SLURM_NTASKS", "8"},
             {"SLURM_STEP_NODELIST", "n1"},
             {"SLURM_JOB_ID", "7"},
             {"SLURM_STEP_ID", "0"},
             {"PMI_RANK", "5"},
             {"PMI_SIZE", "8"}};
    const RankPlace p = place_with(step);
    EXPECT_EQ(p.launcher, Launcher::slurm);
    EXPECT_EQ(p.rank, 5);
    EXPECT_EQ(p.local_rank, 1);
    EXPECT_EQ(p.address, "n1");
    // mpirun of MPICH in a job: srun starts one helper on each node, and that starts the ranks.
    step["SLURM_PROCID"] = "0";
    step["SLURM_STEP_NUM_TASKS"] = "2";
    EXPECT_EQ(place_with(step).launcher, Launcher::mpich);
    EXPECT_EQ(place_with(step).rank, 5);
    step["OMPI_COMM_WORLD_RANK"] = "3";
    step["OMPI_COMM_WORLD_SIZE"] = "4";
    EXPECT_EQ(place_with(step).launcher, Launcher::open_mpi);
    EXPECT_EQ(place_with(step).rank, 3);
}

TEST(Rendezvous, numbers_of_jobs_and_steps_may_be_large) {
    Set step{{"SLURM_PROCID", "1"},
             {"SLURM_STEP_NUM_TASKS", "2"},
             {"SLURM_STEP_NODELIST", "n1"},
             {"SLURM_JOB_ID", "4000000000"},
             {"SLURM_STEP_ID", "4294967294"}};
    EXPECT_EQ(place_with(step).port, 20000 + static_cast<int>((4000000000 * 6151 + 4294967294 * 97) % 19997));
    step["SLURM_PROCID"] = "4294967296";
    expect_usage_error([&] { place_with(step); }, {"SLURM_PROCID=4294967296"});
}

TEST(Rendezvous, ports_of_neighbouring_jobs_and_steps_differ) {
    std::set<int> ports;
    for (int job = 1000; job < 1020; ++job)
        for (int step = 0; step < 20; ++step)
            ports.insert(place_with({{"SLURM_PROCID", "1"},
                                     {"SLURM_STEP_NUM_TASKS", "2"},
                                     {"SLURM_STEP_NODELIST", "n1"},
                                     {"SLURM_JOB_ID", std::to_string(job)},
                                     {"SLURM_STEP_ID", std::to_string(step)}})
                             .port);
    EXPECT_EQ(ports.size(), 400u);
    EXPECT_LT(*ports.rbegin(), 40000);
}

TEST(Rendezvous, jobs_have_names) {
    Set ranks{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "6000"}};
    EXPECT_EQ(place_with(ranks).job, "");
    ranks["TORCHELASTIC_RUN_ID"] = "none";  // torchrun's when none was given
    EXPECT_EQ(place_with(ranks).job, "");
    ranks["TORCHELASTIC_RUN_ID"] = "abc";
    EXPECT_EQ(place_with(ranks).job, "torchrun abc");
    ranks["TERATRON_JOB"] = "mine";
    EXPECT_EQ(place_with(ranks).job, "mine");
    EXPECT_EQ(place_with({{"SLURM_PROCID", "1"},
                          {"SLURM_STEP_NUM_TASKS", "2"},
                          {"SLURM_STEP_NODELIST", "n1"},
                          {"SLURM_JOB_ID", "12"},
                          {"SLURM_STEP_ID", "3"}})
                  .job,
              "Slurm 12.3");
}

TEST(Rendezvous, variables_that_deny_the_ranks_of_mpirun_are_refused) {
    Set both{{"RANK", "0"},
             {"WORLD_SIZE", "1"},
             {"OMPI_COMM_WORLD_RANK", "1"},
             {"OMPI_COMM_WORLD_SIZE", "2"},
             {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
    expect_usage_error([&] { place_with(both); }, {"WORLD_SIZE is 1", "mpirun started 2", "OMPI_COMM_WORLD_SIZE"});
    both["WORLD_SIZE"] = "16";  // mpirun has started launchers
    both["MASTER_ADDR"] = "a";
    both["MASTER_PORT"] = "6000";
    EXPECT_EQ(place_with(both).size, 16);
}

TEST(Rendezvous, a_batch_script_of_slurm_is_no_rank) {
    // sbatch sets these for the script itself; srun has not started it.
    EXPECT_EQ(place_with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "7"}}).size, 1);
}

TEST(Rendezvous, mpirun) {
    const RankPlace p =
        place_with({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "2"}});
    EXPECT_EQ(p.rank, 2);
    EXPECT_EQ(p.launcher, Launcher::open_mpi);
    EXPECT_EQ(p.address, "");
    EXPECT_EQ(place_with({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).launcher, Launcher::mpich);
}

TEST(Rendezvous, a_launcher_goes_before_a_rank_without_world_size) {
    EXPECT_EQ(place_with({{"RANK", "1"}, {"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}).rank, 3);
    EXPECT_EQ(
        place_with(
            {{"RANK", "1"}, {"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_NODELIST", "n[1-2]"}})
            .rank,
        2);
}

TEST(Rendezvous, what_does_not_fit_is_named) {
    const Set good{{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "6000"}};
    const auto wrong = [&](const std::string& name, const char* value, std::initializer_list<const char*> words) {
        Set set = good;
        if (value == nullptr)
            set.erase(name);
        else
            set[name] = value;
        expect_usage_error([&] { place_with(set); }, words);
    };
    wrong("RANK", "one", {"RANK=one"});
    wrong("RANK", "-1", {"RANK=-1"});
    wrong("RANK", "2", {"RANK=2", "WORLD_SIZE=2"});
    wrong("RANK", nullptr, {"WORLD_SIZE is 2", "RANK"});
    wrong("WORLD_SIZE", nullptr, {"RANK is 1", "WORLD_SIZE is not set"});
    expect_usage_error([] { place_with({{"RANK", "0"}}); }, {"RANK is 0", "WORLD_SIZE is not set"});
    wrong("MASTER_ADDR", nullptr, {"MASTER_ADDR"});
    wrong("MASTER_PORT", nullptr, {"MASTER_PORT"});
    wrong("MASTER_PORT", "70000", {"MASTER_PORT"});
}

TEST(Rendezvous, first_host_of_slurms_lists) {
    EXPECT_EQ(first_host("node7"), "node7");
    EXPECT_EQ(first_host("node7,node9"), "node7");
    EXPECT_EQ(first_host("n[01-04]"), "n01");
    EXPECT_EQ(first_host("n[3,5-7]-ib"), "n3-ib");
    EXPECT_EQ(first_host("a1,n[3,5-7]"), "a1");
    EXPECT_EQ(first_host("n[12],b"), "n12");
    expect_usage_error([] { first_host("n[12"); }, {"n[12"});
}

}  // namespace
}  // namespace tera
