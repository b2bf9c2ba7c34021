// How a run ends before its time, what it saves then, and the lines of the other log formats in place.
#include <csignal>

#include "trainer_fixture.h"

namespace tera {
namespace {

class TrainerControl : public TrainerRuns {
  protected:
    bool exists(const std::string& path) const { return std::filesystem::exists(folder + "/" + path); }
    std::string save() const { return "--save " + folder + "/ck --save-interval 100 "; }
};
class TrainerFormats : public TrainerRuns {};
class TrainerFp16 : public TrainerRuns {};

TEST_F(TrainerControl, StartsInTheDocumentedOrder) {
    const RunRecord record = run("--train-iters 1 " + save());
    const char* order[] = {"using world size: 1, data-parallel size: 1",
                           "using torch.float32 for parameters ...",
                           "------------------------ arguments ------------------------",
                           "setting number of microbatches to constant 2",
                           "> building NullTokenizer tokenizer ...",
                           " > padded vocab (size: 101) with 27 dummy tokens (new size: 128)",
                           "> initialized tensor model parallel with size 1",
                           "> initialized pipeline model parallel with size 1",
                           "> setting random seeds to 1234 ...",
                           "time to initialize megatron (seconds): ",
                           "[after megatron is initialized] datetime: ",
                           "building GPT model ...",
                           " > number of parameters on (tensor, pipeline) model parallel rank (0, 0): ",
                           "> learning rate decay style: linear",
                           "[after model, optimizer, and learning rate scheduler are built] datetime: ",
                           "> building train, validation, and test datasets ...",
                           " > datasets target sizes (minimum size):",
                           "    train:      4",
                           "> finished creating GPT datasets ...",
                           "[after dataloaders are built] datetime: ",
                           "done with setup ...",
                           "training ...",
                           "[before the start of training step] datetime: ",
                           " iteration        1/       1 |",
                           "[after training is done] datetime: ",
                           "saving checkpoint at iteration       1 to ",
                           "  successfully saved checkpoint from iteration       1 to "};
    std::size_t at = 0;
    for (const char* line : order) {
        while (at < record.lines.size() && record.lines[at].find(line) == std::string::npos) ++at;
        ASSERT_LT(at, record.lines.size()) << "missing or out of order: " << line;
    }
}

TEST_F(TrainerControl, ExitIntervalSavesAndStopsWithoutTheFinalEvaluation) {
    const RunRecord record = run(save() + "--train-iters 9 --exit-interval 3 --eval-iters 1");
    EXPECT_FALSE(record.finished);
    EXPECT_EQ(record.state.iteration, 3);
    EXPECT_TRUE(record.printed("[exiting program at iteration 3] datetime: "));
    EXPECT_TRUE(exists("ck/iter_0000003/training_state/state.json"));
    EXPECT_FALSE(record.printed("on validation set"));
}

TEST_F(TrainerControl, DurationStopsAfterTheIterationInProgress) {
    EXPECT_TRUE(run(save() + "--train-iters 3 --exit-duration-in-mins 1").finished);
    process_age = std::chrono::seconds(61);
    const RunRecord record = run(save() + "--train-iters 9 --exit-duration-in-mins 1");
    EXPECT_FALSE(record.finished);
    EXPECT_EQ(record.state.iteration, 1);
    EXPECT_TRUE(record.printed("[exiting program after "));
    EXPECT_TRUE(exists("ck/iter_0000001"));
}

TEST_F(TrainerControl, SignalSavesAndStops) {
    auto raise_at_two = [](int signal) {
        return [signal](const std::string& line) {
            if (line.find(" iteration        2/") != std::string::npos) raise(signal);
        };
    };
    const RunRecord term = run(save() + "--train-iters 9 --exit-signal-handler", raise_at_two(SIGTERM));
    EXPECT_FALSE(term.finished);
    EXPECT_EQ(term.state.iteration, 2);
    EXPECT_TRUE(term.printed("[exiting program after receiving SIGTERM.] datetime: "));
    EXPECT_TRUE(exists("ck/iter_0000002"));
    const RunRecord usr2 =
        run(save() + "--train-iters 9 --exit-signal-handler --log-format swiss", raise_at_two(SIGUSR2));
    EXPECT_EQ(usr2.state.iteration, 2);
    EXPECT_TRUE(usr2.printed("[exiting program after receiving SIGUSR2.] datetime: "));
}

TEST_F(TrainerControl, SignalBeforeTheFirstIterationIsActedOnAfterIt) {
    const RunRecord record = run(save() + "--train-iters 9 --exit-signal-handler", [](const std::string& line) {
        if (line.find("> building train, validation") != std::string::npos) raise(SIGTERM);
    });
    EXPECT_FALSE(record.finished);
    EXPECT_EQ(record.state.iteration, 1);
    EXPECT_TRUE(exists("ck/iter_0000001"));
}

TEST_F(TrainerControl, TriggersSaveAndExit) {
    const std::string triggers = folder + "/triggers";
    const RunRecord record = run(save() + "--train-iters 9 --trigger-path " + triggers, [&](const std::string& line) {
        if (line.find(" iteration        2/") != std::string::npos) std::ofstream(triggers + "/save") << "";
        if (line.find(" iteration        4/") != std::string::npos) std::ofstream(triggers + "/exit") << "";
    });
    EXPECT_TRUE(record.printed("Exit trigger setup! run `touch " + triggers + "/exit` to stop training"));
    EXPECT_TRUE(record.printed("Save trigger setup! run `touch " + triggers + "/save` to save a checkpoint"));
    EXPECT_FALSE(record.finished);
    EXPECT_EQ(record.state.iteration, 4);
    EXPECT_TRUE(exists("ck/iter_0000002"));
    EXPECT_FALSE(exists("ck/iter_0000004")) << "the exit trigger does not save";
    EXPECT_FALSE(exists("triggers/save"));
    EXPECT_TRUE(exists("triggers/exit")) << "it is the launcher's to delete";
}

TEST_F(TrainerControl, GuardRailTouchesTheExitTrigger) {
    const std::string triggers = folder + "/triggers";
    const RunRecord done = run("--train-iters 1 --trigger-path " + triggers);
    EXPECT_TRUE(done.printed("Training finished after 1 iterations; Canceling pending scheduled jobs."));
    EXPECT_TRUE(exists("triggers/exit"));
    std::filesystem::remove(triggers + "/exit");
    EXPECT_NE(failure("--train-iters 1 --tokenizer-type GPT2BPETokenizer --trigger-path " + triggers), "no failure");
    EXPECT_TRUE(exists("triggers/exit"));
}

TEST_F(TrainerControl, ProgressFileAndKeptCheckpoints) {
    run("--train-iters 4 --log-progress --keep-last 2 --save-interval 1 --save " + folder + "/ck");
    std::ifstream in(folder + "/ck/progress.txt");
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_NE(lines[0].find("Starting job"), std::string::npos);
    EXPECT_NE(lines[4].find("Saved checkpoint\tIteration: 4"), std::string::npos);
    EXPECT_FALSE(exists("ck/iter_0000002"));
    EXPECT_TRUE(exists("ck/iter_0000003") && exists("ck/iter_0000004"));
}

TEST_F(TrainerFormats, EachHasItsLine) {
    const std::string flags = "--train-iters 2 --log-throughput --log-params-norm --log-format ";
    EXPECT_TRUE(run(flags + "core-0.12").printed("throughput per GPU (TFLOP/s/GPU): "));
    const RunRecord legacy = run(flags + "legacy");
    EXPECT_TRUE(legacy.printed(" iteration        2/       2 | consumed samples:            8 | elapsed time per"));
    EXPECT_TRUE(legacy.printed("using world size: 1, data-parallel-size: 1, tensor-model-parallel size: 1, "));
    EXPECT_TRUE(run(flags + "jsc").printed(" samples per second: "));
    EXPECT_TRUE(run(flags + "swiss").printed(" tokens/sec/gpu: "));
    EXPECT_TRUE(run(flags + "v1").printed(" iteration        2/       2 | elapsed time per iteration (ms): "));
    // The newest core logs the first iteration whatever the interval.
    const RunRecord head = run("--train-iters 4 --log-interval 4 --log-format core-head");
    EXPECT_EQ(head.count(" lm loss: "), 2);
    EXPECT_EQ(run("--train-iters 4 --log-interval 4").count(" lm loss: "), 1);
}

TEST_F(TrainerFormats, LossIsTheMeanOfTheInterval) {
    const RunRecord each = run("--train-iters 4"), all = run("--train-iters 4 --log-interval 4");
    double sum = 0;
    for (double loss : each.losses) sum += loss;
    EXPECT_DOUBLE_EQ(all.losses.at(0), sum / 4);
    EXPECT_EQ(all.metrics.size(), 1u);
}

TEST_F(TrainerFp16, OverflowsAreSkippedAndHalveTheScale) {
    // At a scale of 2^32 every gradient overflows fp16: three iterations as in the logs of the reference.
    const RunRecord record = run("--train-iters 3 --fp16 --lr-warmup-iters 1");
    EXPECT_EQ(record.field("loss scale", 0), "4294967296.0");
    EXPECT_EQ(record.field("loss scale", 1), "2147483648.0");
    EXPECT_EQ(record.field("loss scale", 2), "1073741824.0");
    EXPECT_EQ(record.field("learning rate", 2), "0.000000E+00");
    EXPECT_EQ(record.field("lm loss", 0), "");
    EXPECT_EQ(record.field("grad norm", 0), "");
    EXPECT_EQ(record.field("number of skipped iterations", 0), "1");
    EXPECT_EQ(record.state.schedule_samples, 0);
    EXPECT_EQ(record.state.consumed_train_samples, 12);
}

TEST_F(TrainerFp16, WhereEveryIterationIsSkippedThereIsNoLoss) {
    // The newest core prints a loss of 0; a line without it and null in the metrics say that there was none.
    for (const std::string format : {"core-0.12", "core-head", "swiss", "legacy"}) {
        const RunRecord record = run("--train-iters 4 --log-interval 2 --fp16 --log-format " + format);
        EXPECT_EQ(record.field("number of skipped iterations", 1), "2") << format;
        EXPECT_FALSE(record.printed("lm loss")) << format;
        ASSERT_FALSE(record.metrics.empty());
        for (const auto& line : record.metrics) EXPECT_TRUE(line.at("lm_loss").is_null()) << line;
    }
}

TEST_F(TrainerFp16, FindsItsScaleAndLearns) {
    const RunRecord record = run("--train-iters 30 --fp16 --initial-loss-scale 1048576 --loss-scale-window 4");
    double first = -1, last = -1;
    for (double loss : record.losses) {
        if (loss < 0) continue;
        if (first < 0) first = loss;
        last = loss;
    }
    EXPECT_GT(first, 0);
    EXPECT_LT(last, first);
    EXPECT_GT(record.state.schedule_samples, 0);
    // The same from a checkpoint in the middle: the scaler's counters travel too.
    const std::string flags = "--train-iters 12 --fp16 --initial-loss-scale 1048576 --loss-scale-window 4 ";
    const RunRecord whole = run(flags);
    const std::string ck = "--save " + folder + "/ck --load " + folder + "/ck --save-interval 100 ";
    run(flags + ck + "--exit-interval 7");
    expect_same_training(whole, run(flags + ck));
}

}  // namespace
}  // namespace tera
