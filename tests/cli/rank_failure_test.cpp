// A rank of a training run dies, stops or throws at a random moment: it is named within 30 seconds, all processes are
// gone, and the exit code is not 0. TERA_FAILURE_ROUNDS (default 1) times each, on sockets and on MPI.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "cli/process.h"
#include "comm/mpi_world.h"
#include "data/indexed_dataset_writer.h"
#include "support/words.h"

namespace tera::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

constexpr int ranks = 4;

std::string training(const std::string& data) {
    return "pretrain gpt --num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 "
           "--max-position-embeddings 32 --micro-batch-size 2 --global-batch-size 16 --lr 1e-3 --tokenizer-type "
           "NullTokenizer --vocab-size 100 --log-interval 1 --eval-iters 0 --num-workers 0 --threads 1 --device cpu "
           "--train-iters 1000000 --tensor-model-parallel-size 2 --no-mmap-bin-files --split 1,0,0 --data-path " +
           data;
}

/// The command that starts the ranks.
struct Starter {
    const char* name;
    Words (*command)(const fs::path& folder);
};

Words by_launch_local(const fs::path& folder) {
    return words(std::string(TERA_BINARY) + " launch local --nproc-per-node 4 -- " +
                 training((folder / "data0").string()));
}

/// Every rank has its data to itself.
Words by_mpirun(const fs::path& folder) {
    std::string text = "mpirun --oversubscribe --mca btl_vader_single_copy_mechanism none";
    for (int r = 0; r < ranks; ++r)
        text += (r == 0 ? " -np 1 " : " : -np 1 ") + std::string(TERA_BINARY) + " " +
                training((folder / ("data" + std::to_string(r))).string());
    return words(text);
}

/// As hand-written scripts do it, with variables.
Words by_script(const fs::path& folder) {
    const fs::path script = folder / "start.sh";
    std::ofstream out(script);
    out << "export WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=" << 20000 + getpid() % 20000 << "\n";
    for (int r = 0; r < ranks; ++r)
        out << "RANK=" << r << " LOCAL_RANK=" << r << " " << TERA_BINARY << " "
            << training((folder / ("data" + std::to_string(r))).string()) << " &\n";
    out << "wrong=0; for job in $(jobs -p); do wait $job || wrong=1; done; exit $wrong\n";
    return {"/bin/bash", script.string()};
}

/// Two ranks on each of two nodes, of which one does not end the others.
Words by_srun(const fs::path& folder) {
    return {with_slurm,
            "srun",
            "--kill-on-bad-exit=0",
            "-N",
            "2",
            "--ntasks-per-node",
            "2",
            "bash",
            "-c",
            "exec " TERA_BINARY " " + training((folder / "data$SLURM_PROCID").string())};
}

std::string environment_of(pid_t pid, const std::string& name) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
    for (std::string entry; std::getline(in, entry, '\0');) {
        if (entry.rfind(name + "=", 0) == 0) return entry.substr(name.size() + 1);
    }
    return "";
}

pid_t parent_of(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(in, text);
    const auto at = text.rfind(')');
    if (at == text.npos) return -1;
    std::istringstream fields(text.substr(at + 1));
    std::string state;
    pid_t parent = -1;
    fields >> state >> parent;
    return state == "Z" ? -1 : parent;
}

constexpr const char* run_variable = "TERA_TEST_RUN";  // by which its ranks are known, whoever starts them

/// A training run of four ranks and what it printed so far.
class TrainingRun {
  public:
    TrainingRun(const Starter& starter, const fs::path& folder) : output_(folder / "output") {
        const Words command = starter.command(folder);
        fs::remove(output_);
        pid_ = fork();
        if (pid_ == 0) {
            setenv(run_variable, output_.c_str(), 1);
            setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
            setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
            const int fd = open(output_.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
            dup2(fd, 1);
            dup2(fd, 2);
            std::vector<char*> argv;
            for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
            argv.push_back(nullptr);
            execvp(argv[0], argv.data());
            std::_Exit(127);
        }
    }
    ~TrainingRun() {
        for (const auto& [rank, pid] : pids_) kill(pid, SIGKILL);
        if (!ended_) kill(pid_, SIGKILL), waitpid(pid_, nullptr, 0);
    }

    std::string output() const { return read_file(output_); }

    /// True once all four ranks train; their process numbers are known then.
    bool wait_until_training() {
        for (int tries = 0; tries < 600; ++tries) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            if (fs::exists(output_) && output().find("iteration        3/") != std::string::npos) break;
        }
        for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
            const pid_t pid = std::atoi(entry.path().filename().c_str());
            if (pid <= 0 || parent_of(pid) < 0 || environment_of(pid, run_variable) != output_) continue;
            for (const char* variable : {"OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK"}) {
                const std::string rank = environment_of(pid, variable);
                if (!rank.empty()) pids_[std::atoi(rank.c_str())] = pid;
            }
        }
        return pids_.size() == ranks;
    }

    pid_t pid(int rank) const { return pids_.at(rank); }

    /// The exit code, if it came to an end within 30 s.
    std::optional<int> wait_for_end() {
        const auto deadline = Clock::now() + std::chrono::seconds(30);
        while (Clock::now() < deadline) {
            int status = 0;
            if (waitpid(pid_, &status, WNOHANG) == pid_) {
                ended_ = true;
                return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
        return {};
    }
    /// Ranks that are still there two seconds after the end.
    int left_behind() const {
        for (int tries = 0;; ++tries) {
            int count = 0;
            for (const auto& [rank, pid] : pids_) count += parent_of(pid) >= 0 && !environment_of(pid, "PATH").empty();
            if (count == 0 || tries == 100) return count;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        }
    }

  private:
    fs::path output_;
    pid_t pid_;
    bool ended_ = false;
    std::map<int, pid_t> pids_;
};

void write_data(const fs::path& folder) {
    for (int r = 0; r < ranks; ++r) {
        IndexedDatasetWriter writer((folder / ("data" + std::to_string(r))).string(), TokenType::u16);
        for (std::int32_t d = 0; d < 200; ++d) {
            std::vector<std::int32_t> tokens;
            for (std::int32_t i = 0; i < 100; ++i) tokens.push_back((7 * d + 3 * i) % 100);
            writer.add_sequence(tokens);
            writer.end_document();
        }
        writer.finish();
    }
}

class SlowRankFailure : public ::testing::TestWithParam<Starter> {
  protected:
    static int rounds() {
        const char* text = std::getenv("TERA_FAILURE_ROUNDS");
        return text == nullptr ? 1 : std::atoi(text);
    }

    void SetUp() override {
        if (GetParam().command == &by_mpirun &&
            (!mpi_missing().empty() || std::system("command -v mpirun > /dev/null") != 0))
            GTEST_SKIP() << "there is no MPI here: " << mpi_missing();
        if (GetParam().command == &by_srun && !slurm_missing().empty()) GTEST_SKIP() << slurm_missing();
    }

    /// Does `harm` to a rank while it trains, and expects it to be named with one of `words`.
    void expect_named(const std::function<void(TrainingRun&, int rank)>& harm, const Words& reasons) {
        std::mt19937 random(static_cast<unsigned>(getpid()));
        for (int round = 0; round < rounds(); ++round) {
            write_data(folder_.path());
            TrainingRun run(GetParam(), folder_.path());
            ASSERT_TRUE(run.wait_until_training()) << run.output();
            std::this_thread::sleep_for(std::chrono::milliseconds(random() % 1500));
            const int rank = static_cast<int>(random() % ranks);
            SCOPED_TRACE("round " + std::to_string(round) + ", rank " + std::to_string(rank));
            harm(run, rank);
            const std::optional<int> code = run.wait_for_end();
            ASSERT_TRUE(code.has_value()) << "still there after 30 s: " << run.output();
            EXPECT_NE(*code, 0);
            EXPECT_EQ(run.left_behind(), 0);
            const std::string output = run.output(), name = "rank " + std::to_string(rank) + " ";
            bool named = false;
            std::istringstream lines(output);
            for (std::string line; std::getline(lines, line);) {
                for (const std::string& reason : reasons)
                    named = named || (line.find(name) != line.npos && line.find(reason) != line.npos);
            }
            EXPECT_TRUE(named) << output;
        }
    }

    TemporaryFolder folder_;
};

TEST_P(SlowRankFailure, killed) {
    expect_named([](TrainingRun& run, int rank) { kill(run.pid(rank), SIGKILL); },
                 {"killed by signal 9", "has ended without a word"});
}

TEST_P(SlowRankFailure, stopped) {
    expect_named([](TrainingRun& run, int rank) { kill(run.pid(rank), SIGSTOP); }, {"gives no sign of life"});
}

TEST_P(SlowRankFailure, throws) {
    if (GetParam().command == &by_launch_local) GTEST_SKIP() << "its ranks share their data";
    // The data of one rank is cut short under its feet.
    expect_named(
        [&](TrainingRun&, int rank) { fs::resize_file(folder_ / ("data" + std::to_string(rank) + ".bin"), 0); },
        {"data"});
}

/// Two ranks each on two machines, and those of the second write into files of their own.
Words on_two_machines(const fs::path& folder) {
    const fs::path script = folder / "start.sh";
    std::ofstream out(script);
    out << "export WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=" << 20000 + getpid() % 20000 << "\n";
    for (int r = 0; r < ranks; ++r)
        out << "RANK=" << r << " LOCAL_RANK=" << r % 2 << " " << TERA_BINARY << " "
            << training((folder / ("data" + std::to_string(r))).string())
            << (r < 2 ? "" : " > " + (folder / ("log" + std::to_string(r))).string() + " 2>&1") << " &\n";
    out << "wait\n";
    return {"/bin/bash", script.string()};
}

TEST(SlowMachines, each_has_one_rank_that_says_why_all_leave) {
    const TemporaryFolder folder;
    write_data(folder.path());
    TrainingRun run(Starter{"two_machines", &on_two_machines}, folder.path());
    ASSERT_TRUE(run.wait_until_training()) << run.output();
    kill(run.pid(1), SIGKILL);
    ASSERT_TRUE(run.wait_for_end().has_value()) << run.output();
    for (const std::string& log : {run.output(), read_file(folder / "log2")}) {
        EXPECT_NE(log.find("leaving: rank 1 ("), log.npos) << log;
        EXPECT_NE(log.find("has ended without a word"), log.npos) << log;
    }
    EXPECT_EQ(read_file(folder / "log3").find("leaving"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Slow, SlowRankFailure,
                         ::testing::Values(Starter{"launch_local", &by_launch_local}, Starter{"mpirun", &by_mpirun},
                                           Starter{"script", &by_script}, Starter{"srun", &by_srun}),
                         [](const auto& starter) { return std::string(starter.param.name); });

}  // namespace
}  // namespace tera::test
