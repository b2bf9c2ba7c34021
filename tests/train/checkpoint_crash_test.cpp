// Saving is interrupted at every step, by death and by error, and the checkpoint before it must be whole; and what a
// full disk leaves behind is nothing.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "io/durable_file.h"
#include "support/expect_usage_error.h"
#include "support/fake_model.h"
#include "support/model_configs.h"
#include "support/temp_folder.h"
#include "train/checkpoint.h"

namespace tera {
namespace {
namespace fs = std::filesystem;

struct Interrupted {};

ModelConfig one_layer() {
    ModelConfig c = tiny_llama();
    c.layers = 1;
    return c;
}

void save(const FakeModel& model, std::int64_t iteration, SaveOptions options) {
    CheckpointState state;
    state.iteration = iteration;
    state.seed = 1;
    save_checkpoint({model.config(), model.params(), model.optimizer(), {}, 1, state}, options);
}

/// Iteration of the checkpoint found; its tensors must be those of `model_at(iteration)`.
template <class ModelAt>
std::int64_t check_whole(const std::string& folder, const ModelAt& model_at) {
    const FakeModel back(one_layer(), DType::bf16, 0);
    const auto where = find_checkpoint(folder);
    if (!where) return -1;
    const LoadResult result = load_checkpoint(*where, back.target(), {});
    EXPECT_EQ(model_at(result.state.iteration).first_difference(back), "");
    return result.state.iteration;
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

/// Ends the process or throws at call number `at`.
std::function<void(const std::string&)> interrupt(int at, bool die) {
    return [=, count = 0](const std::string&) mutable {
        if (count++ != at) return;
        if (die) _exit(77);
        throw Interrupted{};
    };
}

/// True if the save came to its end.
bool save_interrupted(const FakeModel& model, std::int64_t iteration, SaveOptions options, int at, bool die) {
    options.before_step = interrupt(at, die);
    if (!die) {
        try {
            save(model, iteration, options);
            return true;
        } catch (const Interrupted&) {
            return false;
        }
    }
    const pid_t child = fork();
    if (child == 0) {
        save(model, iteration, options);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status) == 0;
}

class CheckpointCrash : public ::testing::TestWithParam<bool> {
  protected:
    const FakeModel first_{one_layer(), DType::bf16, 10}, second_{one_layer(), DType::bf16, 20};
};

TEST_P(CheckpointCrash, LeavesTheCheckpointBefore) {
    bool done = false;
    int steps = 0, reached_new = 0;
    for (; !done; ++steps) {
        ASSERT_LT(steps, 1000);
        TempFolder folder{TempFolder::Where::memory};
        const SaveOptions options{.folder = folder.path(), .keep_last = 1};
        save(first_, 10, options);
        done = save_interrupted(second_, 20, options, steps, GetParam());
        const auto found =
            check_whole(folder.path(), [&](auto i) -> const FakeModel& { return i == 10 ? first_ : second_; });
        EXPECT_TRUE(found == 10 || found == 20);
        EXPECT_TRUE(!done || found == 20);
        reached_new += found == 20;
        if (!GetParam() && found == 10) {
            for (const std::string& name : names_in(folder.path()))
                EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
        }
        // The next save clears away whatever was left.
        save(second_, 20, options);
        EXPECT_EQ(names_in(folder.path()),
                  (std::vector<std::string>{"iter_0000020", "latest_checkpointed_iteration.txt"}));
    }
    EXPECT_GT(steps, 40) << "too few steps were tried";
    EXPECT_GE(reached_new, 3) << "after the tracker names it, the new one must be found";
}

TEST_P(CheckpointCrash, LeavesOneOfTheTwoWhenAnIterationIsSavedAgain) {
    bool done = false;
    for (int at = 0; !done; ++at) {
        ASSERT_LT(at, 1000);
        TempFolder folder{TempFolder::Where::memory};
        const SaveOptions options{.folder = folder.path()};
        save(first_, 10, options);
        done = save_interrupted(second_, 10, options, at, GetParam());
        const FakeModel back(one_layer(), DType::bf16, 0);
        load_checkpoint(find_checkpoint(folder.path()).value(), back.target(), {});
        EXPECT_TRUE(first_.first_difference(back).empty() || second_.first_difference(back).empty());
        EXPECT_TRUE(!done || second_.first_difference(back).empty());
        save(second_, 10, options);
        EXPECT_EQ(names_in(folder.path()).size(), 2u);
    }
}

TEST_P(CheckpointCrash, TheFirstOneIsThereOrNot) {
    bool done = false;
    for (int at = 0; !done; ++at) {
        ASSERT_LT(at, 1000);
        TempFolder folder{TempFolder::Where::memory};
        done = save_interrupted(second_, 20, {.folder = folder / "new"}, at, GetParam());
        const auto found = check_whole(folder / "new", [&](auto) -> const FakeModel& { return second_; });
        EXPECT_EQ(found, done ? 20 : -1);
    }
}

INSTANTIATE_TEST_SUITE_P(By, CheckpointCrash, ::testing::Bool(),
                         [](const auto& how) { return how.param ? "Death" : "Error"; });

TEST(CheckpointReplaced, IsFoundBetweenTheTwoRenames) {
    const FakeModel model(one_layer(), DType::bf16, 10), back(one_layer(), DType::bf16, 0);
    TempFolder folder{TempFolder::Where::memory};
    save(model, 10, {.folder = folder.path()});
    fs::rename(folder / "iter_0000010", folder / "iter_0000010.replaced");
    load_checkpoint(find_checkpoint(folder.path()).value(), back.target(), {});
    EXPECT_EQ(model.first_difference(back), "");
    save(model, 20, {.folder = folder.path()});
    EXPECT_TRUE(fs::exists(folder / "iter_0000010.replaced")) << "the only copy of iteration 10";
    save(model, 10, {.folder = folder.path()});
    save(model, 30, {.folder = folder.path()});
    EXPECT_FALSE(fs::exists(folder / "iter_0000010.replaced"));
}

TEST(CheckpointRetention, KeepsTheLastAndEveryNth) {
    const FakeModel model(one_layer(), DType::bf16, 10);
    TempFolder folder{TempFolder::Where::memory};
    for (std::int64_t i = 1; i <= 9; ++i)
        save(model, i * 10, {.folder = folder.path(), .keep_last = 2, .keep_every = 40});
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"iter_0000040", "iter_0000080", "iter_0000090",
                                                                 "latest_checkpointed_iteration.txt"}));
    // Going back to 40 and on from there: what lies ahead stays until it is overwritten.
    save(model, 50, {.folder = folder.path(), .keep_last = 1, .keep_every = 0});
    EXPECT_EQ(names_in(folder.path()), (std::vector<std::string>{"iter_0000050", "iter_0000080", "iter_0000090",
                                                                 "latest_checkpointed_iteration.txt"}));
    EXPECT_EQ(find_checkpoint(folder.path())->iteration, 50);
}

TEST(CheckpointDisk, FullWhileSavingLeavesThePreviousOne) {
    TempFolder folder{TempFolder::Where::memory};
    if (mount("none", folder.path().c_str(), "tmpfs", 0, "size=600k") != 0) GTEST_SKIP() << "a small tmpfs needs root";
    ModelConfig c = one_layer();
    const FakeModel model(c, DType::bf16, 10), back(c, DType::bf16, 0);
    c.true_vocab = c.vocab = 4000;
    const FakeModel large(c, DType::bf16, 20);
    save(model, 10, {.folder = folder.path()});
    expect_usage_error([&] { save(large, 20, {.folder = folder.path()}); }, {"needs", "free there", "--save"});
    // Somebody else fills the disk while we write.
    SaveOptions options{.folder = folder.path()};
    options.before_step = [&](const std::string& what) {
        if (what.find("create training_state/exp_avg_sq") != 0) return;
        std::ofstream filler(folder / "filler");
        while (filler << 'x' << std::flush) continue;
    };
    expect_usage_error([&] { save(model, 20, options); }, {"exp_avg_sq.safetensors", "No space left", "free there"});
    fs::remove(folder / "filler");
    EXPECT_EQ(names_in(folder.path()).size(), 2u);
    load_checkpoint(find_checkpoint(folder.path()).value(), back.target(), {});
    EXPECT_EQ(model.first_difference(back), "");
    umount(folder.path().c_str());
}

TEST(CheckpointDisk, FileSizeLimitLeavesThePreviousOne) {
    TempFolder folder{TempFolder::Where::memory};
    ModelConfig c = one_layer();
    const FakeModel model(c, DType::bf16, 10), back(c, DType::bf16, 0);
    save(model, 10, {.folder = folder.path()});
    rlimit old{};
    getrlimit(RLIMIT_FSIZE, &old);
    const rlimit small{30000, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    expect_usage_error([&] { save(model, 20, {.folder = folder.path()}); }, {"iter_0000020", "File too large", "kB"});
    setrlimit(RLIMIT_FSIZE, &old);
    EXPECT_EQ(names_in(folder.path()).size(), 2u);
    load_checkpoint(find_checkpoint(folder.path()).value(), back.target(), {});
    EXPECT_EQ(model.first_difference(back), "");
}

TEST(CheckpointDisk, AnUnwritableFolderShowsBeforeTraining) {
    TempFolder folder{TempFolder::Where::memory};
    write_file_durably(folder / "plain", "x");
    expect_usage_error([&] { check_save_folder(folder / "plain"); }, {"plain"});
    expect_usage_error([&] { check_save_folder(folder / "plain/below"); }, {"plain/below"});
    expect_usage_error([&] { check_save_folder("/proc/nothing"); }, {"/proc/nothing"});
    check_save_folder(folder / "new/deep");
    EXPECT_TRUE(fs::is_empty(folder / "new/deep"));
}

}  // namespace
}  // namespace tera
