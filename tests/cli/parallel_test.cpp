// Training on ranks that are processes: started by `launch local`, mpirun, torchrun, srun and as pods are, they
// train as one rank does.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <thread>

#include "cli/process.h"
#include "comm/mpi_world.h"
#include "comm/tcp.h"
#include "support/words.h"

namespace tera::test {
namespace {

const std::string train =
    "pretrain gpt --num-layers 4 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 "
    "--micro-batch-size 1 --global-batch-size 8 --lr 1e-2 --tokenizer-type NullTokenizer --vocab-size 100 "
    "--log-interval 1 --eval-iters 0 --num-workers 0 --threads 1 --device cpu --mock-data --train-iters 5 "
    "--make-vocab-size-divisible-by 256 ";
const std::string layout =
    "--tensor-model-parallel-size 2 --sequence-parallel --pipeline-model-parallel-size 2 --use-distributed-optimizer "
    "--make-vocab-size-divisible-by 128 ";  // padding goes by the ranks too

/// The losses in the training lines.
std::vector<double> losses(const std::string& output) {
    std::vector<double> all;
    const std::string field = "| lm loss: ";
    for (std::size_t at = output.find(field); at != std::string::npos; at = output.find(field, at + 1))
        all.push_back(std::stod(output.substr(at + field.size())));
    return all;
}

/// As printed: seven digits.
void expect_same_losses(const std::string& many, const std::string& one) {
    const std::vector<double> a = losses(many), b = losses(one);
    ASSERT_EQ(b.size(), 5u) << one;
    ASSERT_EQ(a.size(), 5u) << many;
    for (std::size_t i = 0; i < b.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-6 * b[i]);
}

TEST(ParallelTraining, eight_processes_of_launch_local) {
    const Outcome one = teratron(words(train));
    ASSERT_EQ(one.exit_code, 0) << one.err;
    const Outcome many = teratron(words("launch local --nproc-per-node 8 -- " + train + layout));
    ASSERT_EQ(many.exit_code, 0) << many.err;
    expect_same_losses(many.out, one.out);
}

bool there_is_mpi() { return mpi_missing().empty() && std::system("command -v mpirun > /dev/null") == 0; }

/// What eight ranks of mpirun print.
std::string mpirun_8(const std::string& arguments, int& exit_code) {
    const TemporaryFolder folder;
    const std::string command =
        "ASAN_OPTIONS=detect_leaks=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 100 mpirun "
        "--oversubscribe "
        "--mca btl_vader_single_copy_mechanism none -np 8 '" TERA_BINARY "' " +
        arguments + " > " + (folder / "out").string() + " 2>&1";
    exit_code = std::system(command.c_str());
    return read_file(folder / "out");
}

TEST(ParallelTraining, eight_processes_of_mpirun) {
    if (!there_is_mpi()) GTEST_SKIP() << "there is no MPI here: " << mpi_missing();
    int code = -1;
    const std::string many = mpirun_8(train + layout, code);
    ASSERT_EQ(code, 0) << many;
    expect_same_losses(many, teratron(words(train)).out);
}

std::string torchrun() {
    const std::string own = std::string(TERA_SOURCE_DIR) + "/.venv/bin/torchrun";
    if (std::filesystem::exists(own)) return own;
    return std::system("command -v torchrun > /dev/null") == 0 ? "torchrun" : "";
}

/// What eight ranks print that a command starts.
void expect_training_by(const std::string& command) {
    const TemporaryFolder folder;
    const int status = std::system(cat("ASAN_OPTIONS=detect_leaks=0 timeout 100 ", command, " > ",
                                       (folder / "out").string(), " 2> ", (folder / "err").string())
                                       .c_str());
    const std::string many = read_file(folder / "out");
    ASSERT_EQ(status, 0) << many << read_file(folder / "err");
    expect_same_losses(many, teratron(words(train)).out);
}

TEST(ParallelTraining, eight_processes_of_torchrun) {
    if (torchrun().empty()) GTEST_SKIP() << "there is no torchrun here (scripts/setup.sh --oracle)";
    expect_training_by(cat(torchrun(), " --nproc-per-node 8 --no-python ", TERA_BINARY, " ", train, layout));
}

/// Every pod has one process, and finds the first by its name.
TEST(ParallelTraining, eight_processes_of_a_pytorchjob) {
    int port = 0;
    listen_on(port).close();
    std::string ranks = cat("export WORLD_SIZE=8 MASTER_ADDR=localhost MASTER_PORT=", port, " PYTHONUNBUFFERED=1; ");
    for (int r = 0; r < 8; ++r)
        ranks += cat("RANK=", r, " PET_NODE_RANK=", r, " PET_NNODES=8 ", TERA_BINARY, " ", train, layout, "& ");
    ranks += "code=0; for job in $(jobs -p); do wait $job || code=1; done; exit $code";
    expect_training_by(cat("bash -c '", ranks, "'"));
}

TEST(ParallelTraining, eight_processes_of_srun_on_two_nodes) {
    if (const std::string why = slurm_missing(); !why.empty()) GTEST_SKIP() << why;
    expect_training_by(cat(with_slurm, " srun -N 2 --ntasks-per-node 4 ", TERA_BINARY, " ", train, layout));
}

/// As many launchers do, for PyTorch.
TEST(ParallelTraining, eight_processes_of_srun_that_set_the_variables_of_torchrun) {
    if (const std::string why = slurm_missing(); !why.empty()) GTEST_SKIP() << why;
    int port = 0;
    listen_on(port).close();
    const std::string rank = cat("RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS exec ",
                                 TERA_BINARY, " ", train, layout);
    expect_training_by(cat("env MASTER_ADDR=localhost MASTER_PORT=", port, " ", with_slurm,
                           " srun -N 2 --ntasks-per-node 4 bash -c '", rank, "'"));
}

TEST(ParallelTraining, two_torchruns_of_srun) {
    if (const std::string why = slurm_missing(); !why.empty()) GTEST_SKIP() << why;
    if (torchrun().empty()) GTEST_SKIP() << "there is no torchrun here (scripts/setup.sh --oracle)";
    int port = 0;
    listen_on(port).close();
    expect_training_by(cat(with_slurm, " srun -N 2 --ntasks-per-node 1 ", torchrun(),
                           " --nnodes 2 --nproc-per-node 4 --rdzv-id 7 --rdzv-backend c10d --rdzv-endpoint localhost:",
                           port, " --no-python ", TERA_BINARY, " ", train, layout));
}

const std::string verify =
    "verify gpt --num-layers 4 --hidden-size 64 --num-attention-heads 8 --group-query-attention --num-query-groups 2 "
    "--qk-layernorm --normalization RMSNorm --swiglu --position-embedding-type rope --seq-length 64 "
    "--max-position-embeddings 64 --micro-batch-size 2 --global-batch-size 16 --device cpu "
    "--reset-attention-mask --tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer ";

TEST(ParallelVerify, eight_processes_of_launch_local) {
    const Outcome run = teratron(words("launch local --nproc-per-node 8 --no-labels -- " + verify +
                                       "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1"));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("each rank a process"), std::string::npos) << run.out;
    EXPECT_NE(run.out.find("the layout computes what one rank does, within 1e-12"), std::string::npos) << run.out;
}

TEST(ParallelVerify, eight_processes_of_mpirun) {
    if (!there_is_mpi()) GTEST_SKIP() << "there is no MPI here: " << mpi_missing();
    int code = -1;
    const std::string out = mpirun_8(verify + "--context-parallel-size 2", code);
    EXPECT_EQ(code, 0) << out;
    EXPECT_NE(out.find("the layout computes what one rank does, within 1e-12"), std::string::npos) << out;
}

TEST(ParallelVerify, what_cannot_be_is_one_line) {
    const Outcome threads = teratron(words(verify + "--world-size 2 --device cuda"));
    EXPECT_EQ(threads.exit_code, 2);
    EXPECT_EQ(line_count(threads.err), 1u) << threads.err;
    EXPECT_NE(threads.err.find("launch local"), std::string::npos) << threads.err;
    const Outcome sizes =
        teratron(words("launch local --nproc-per-node 2 --no-labels -- " + verify + "--world-size 4"));
    EXPECT_EQ(sizes.exit_code, 2) << sizes.err;
    EXPECT_NE(sizes.err.find("2 ranks were started"), std::string::npos) << sizes.err;
}

TEST(ParallelPlan, memory_of_a_gpu_is_a_number_and_enough) {
    for (const char* memory : {"nan", "inf", "-1", "0", "0.1"}) {
        const Outcome plan =
            teratron(words("plan gpt --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 16 "
                           "--max-position-embeddings 16 --tokenizer-type NullTokenizer --vocab-size 99 --world-size 2 "
                           "--gpu-memory " +
                           std::string(memory)));
        EXPECT_EQ(plan.exit_code, 2) << memory << plan.out;
        EXPECT_EQ(plan.out, "") << memory;
        EXPECT_EQ(line_count(plan.err), 1u) << plan.err;
    }
}

TEST(ParallelTraining, a_batch_on_the_way_up_that_stages_cannot_share_is_refused_at_the_start) {
    std::string flags = train;
    const std::string length = "--train-iters 5";
    flags.replace(flags.find(length), length.size(), "--train-samples 80 --rampup-batch-size 2 3 40");
    const Outcome run = teratron(words("launch local --nproc-per-node 2 --no-labels -- " + flags +
                                       "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1"));
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find("--rampup-batch-size: the batch of 5 samples"), std::string::npos) << run.err;
    EXPECT_TRUE(losses(run.out).empty()) << run.out;
}

TEST(ParallelTraining, wrong_layouts_are_one_line) {
    const Outcome run =
        teratron(words("launch local --nproc-per-node 2 --no-labels -- " + train + "--tensor-model-parallel-size 3"));
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_NE(run.err.find("world size 2 is not a multiple of tensor 3"), std::string::npos) << run.err;
    const Outcome alone = teratron(words(train + "--tensor-model-parallel-size 2 --world-size 2"));
    EXPECT_EQ(alone.exit_code, 2);
    EXPECT_EQ(line_count(alone.err), 1u) << alone.err;
    EXPECT_NE(alone.err.find("launch local"), std::string::npos) << alone.err;
}

/// A port that was free a moment ago.
std::string free_port() {
    int port = 0;
    const Socket s = listen_on(port);
    return std::to_string(port);
}

TEST(ParallelTraining, ranks_by_flags) {
    const std::string flags = train + layout + "--world-size 4 --master-addr 127.0.0.1 --master-port " + free_port();
    // Of a launcher that started one process of its own.
    const RunOptions options{
        .folder = {},
        .environment = {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "nowhere.invalid"}, {"MASTER_PORT", "1"}}};
    std::vector<Outcome> ends(4);
    std::vector<std::thread> ranks;
    for (std::size_t r = 0; r < ends.size(); ++r)
        ranks.emplace_back([&, r] { ends[r] = teratron(words(flags + " --rank " + std::to_string(r)), options); });
    for (std::thread& rank : ranks) rank.join();
    for (const Outcome& end : ends) EXPECT_EQ(end.exit_code, 0) << end.err;
    expect_same_losses(ends[0].out, teratron(words(train)).out);
}

/// As ranks started by hand, which nobody stops when one of them fails; flags_of_one are those of rank `one` alone.
std::vector<Outcome> three_by_hand(const std::string& flags, std::size_t one, const std::string& flags_of_one) {
    const std::string port = free_port();
    std::vector<Outcome> ends(3);
    std::vector<std::thread> ranks;
    for (std::size_t r = 0; r < ends.size(); ++r)
        ranks.emplace_back([&, r] {
            ends[r] = teratron(words(flags + " --distributed-timeout-minutes 1 " + (r == one ? flags_of_one : "")),
                               {.folder = {},
                                .environment = {{"RANK", std::to_string(r)},
                                                {"WORLD_SIZE", "3"},
                                                {"MASTER_ADDR", "127.0.0.1"},
                                                {"MASTER_PORT", port}}});
        });
    for (std::thread& rank : ranks) rank.join();
    return ends;
}

TEST(ParallelTraining, a_rank_that_fails_before_the_meeting_tells_the_others) {
    const std::string flags = train + "--global-batch-size 9 ";
    for (const auto& [wrong, said] :
         {std::pair{"--lr-warmup x", "--lr-warmup"}, std::pair{"--tensor-model-parallel-size 2", "not a multiple"}}) {
        const std::vector<Outcome> ends = three_by_hand(flags, 2, wrong);
        for (const Outcome& end : ends) {
            EXPECT_EQ(end.exit_code, 2) << end.err;
            EXPECT_EQ(line_count(end.err), 1u) << end.err;
            EXPECT_NE(end.err.find(said), std::string::npos) << end.err;
        }
        for (const std::size_t other : {0u, 1u}) {
            EXPECT_NE(ends[other].err.find("rank 2 ("), std::string::npos) << ends[other].err;
            EXPECT_NE(ends[other].err.find("failed before it came: "), std::string::npos) << ends[other].err;
        }
    }
    const Outcome checked = three_by_hand(verify + "--tensor-model-parallel-size 1 --global-batch-size 18", 2,
                                          "--tensor-model-parallel-size 2")[0];
    EXPECT_NE(checked.err.find("failed before it came: "), std::string::npos) << checked.err;
}

TEST(ParallelTraining, rank_0_that_fails_before_the_meeting_turns_the_others_away) {
    const std::string flags = train + "--global-batch-size 9 ";
    for (const auto& [wrong, said] :
         {std::pair{"--lr-warmup x", "--lr-warmup"}, std::pair{"--tensor-model-parallel-size 2", "not a multiple"}}) {
        const std::vector<Outcome> ends = three_by_hand(flags, 0, wrong);
        for (const Outcome& end : ends) {
            EXPECT_EQ(end.exit_code, 2) << end.err;
            EXPECT_EQ(line_count(end.err), 1u) << end.err;
            EXPECT_NE(end.err.find(said), std::string::npos) << end.err;
        }
        for (const std::size_t other : {1u, 2u})
            EXPECT_NE(ends[other].err.find("failed before ranks met: "), std::string::npos) << ends[other].err;
    }
}

TEST(ParallelTraining, a_rank_placed_by_flags_that_fails_before_the_meeting_tells_the_others) {
    for (const std::size_t wrong : {0u, 1u}) {
        const std::string meet =
            " --distributed-timeout-minutes 1 --master-addr=127.0.0.1 --master-port " + free_port();
        std::vector<Outcome> ends(2);
        std::vector<std::thread> ranks;
        for (std::size_t r = 0; r < ends.size(); ++r)
            ranks.emplace_back([&, r] {
                ends[r] = teratron(words(train + meet + " --world-size 2 --rank " + std::to_string(r) +
                                         (r == wrong ? " --no-such-flag" : "")));
            });
        for (std::thread& rank : ranks) rank.join();
        for (const Outcome& end : ends) {
            EXPECT_EQ(end.exit_code, 2) << end.err;
            EXPECT_NE(end.err.find("--no-such-flag"), std::string::npos) << end.err;
        }
    }
}

TEST(ParallelTraining, flags_that_place_a_rank_wrongly_are_one_line) {
    const std::string meet = " --master-addr 127.0.0.1 --master-port " + free_port();
    const auto expect_line = [&](const std::string& flags, const std::string& said, const RunOptions& options = {}) {
        const Outcome run = teratron(words(train + flags), options);
        EXPECT_EQ(run.exit_code, 2) << flags;
        EXPECT_EQ(line_count(run.err), 1u) << run.err;
        EXPECT_NE(run.err.find(said), std::string::npos) << run.err;
    };
    expect_line("--rank 1" + meet, "--rank 1 of how many? Give --world-size too");
    expect_line("--rank 2 --world-size 2" + meet, "--rank 2 is not below --world-size 2");
    expect_line("--rank -1 --world-size 2" + meet, "--rank -1: must not be below 0");
    expect_line("--rank 0 --world-size 2", "--master-addr");
    expect_line("--rank 0 --world-size 2 --master-addr 127.0.0.1", "--master-port");
    expect_line("--rank 0 --world-size 2 --master-addr 127.0.0.1 --master-port 65536",
                "--master-port 65536: must be from 1 to 65535");
    expect_line(
        "--world-size 4", "--world-size 4, but 2 ranks were started",
        {.folder = {},
         .environment = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "6000"}}});
}

TEST(ParallelTraining, launch_flags_out_of_range_are_one_line) {
    for (const auto& [flag, said] : {std::pair{"--master-port 4294967297", "--master-port 4294967297: give 1 to 65535"},
                                     {"--master-port 70000", "--master-port 70000: give 1 to 65535"},
                                     {"--nnodes 4294967296", "--nnodes 4294967296: give 1 to 65536"},
                                     {"--nnodes 2 --node-rank 2", "--node-rank 2 is not below --nnodes 2"}}) {
        const Outcome run = teratron(words(std::string("launch local --nproc-per-node 2 ") + flag + " -- " + train));
        EXPECT_EQ(run.exit_code, 2) << flag;
        EXPECT_EQ(line_count(run.err), 1u) << run.err;
        EXPECT_NE(run.err.find(said), std::string::npos) << run.err;
    }
}

TEST(ParallelTraining, verify_says_which_flags_change_nothing) {
    const Outcome run = teratron(words(verify + "--world-size 2 --tp-comm-overlap"));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("--tp-comm-overlap"), std::string::npos) << run.out;
}

TEST(ParallelTraining, verify_compares_flags_before_anything_else) {
    const Outcome one =
        three_by_hand(verify + "--tensor-model-parallel-size 1 --global-batch-size 18", 2, "--clip-grad 0.5")[0];
    EXPECT_EQ(one.exit_code, 2) << one.err;
    EXPECT_NE(one.err.find("--clip-grad is not the same on rank 2"), std::string::npos) << one.err;
}

TEST(ParallelTraining, what_a_user_can_fix_is_said_and_is_code_2_on_every_rank) {
    const std::string launch = "launch local --nproc-per-node 2 -- ";
    std::string other_data = launch + train;
    other_data.replace(other_data.find("--mock-data"), 11, "--data-path /nowhere/x --split 1,0,0");
    const Outcome missing = teratron(words(other_data));
    EXPECT_EQ(missing.exit_code, 2) << missing.err;
    EXPECT_NE(missing.err.find("/nowhere/x.idx: no such file"), std::string::npos) << missing.err;
    const TemporaryFolder folder;
    const Outcome full = teratron(words(launch + train + "--save " + (folder / "ck").string() + " --save-interval 1"),
                                  {.folder = {}, .file_size_limit = 4096});
    EXPECT_EQ(full.exit_code, 2) << full.err;
    EXPECT_NE(full.err.find("ck/iter_0000001"), std::string::npos) << full.err;  // the file that could not be written
}

}  // namespace
}  // namespace tera::test
