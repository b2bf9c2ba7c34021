// The laws of a training run, each on a tiny model: resume = no stop, threads 1 = threads N, workers 0 = N, recompute
// on = off, all bit for bit; and what the flags about batches, losses and schedules do.
#include <cmath>

#include "data/indexed_dataset_writer.h"
#include "trainer_fixture.h"

namespace tera {
namespace {

class TrainerLaws : public TrainerRuns {};
class TrainerResume : public TrainerRuns {};
class TrainerFlags : public TrainerRuns {};

TEST_F(TrainerLaws, ThreadsDoNotChangeABit) {
    const std::string flags = "--train-iters 5 --seed 7 ";
    const RunRecord one = run(flags + "--threads 1"), many = run(flags + "--threads 5");
    ASSERT_EQ(one.losses.size(), 5u);
    EXPECT_LT(one.losses[4], one.losses[0]);
    expect_same_training(one, many);
}

TEST_F(TrainerLaws, WorkersDoNotChangeABit) {
    for (const char* sampler : {"single", "cyclic"}) {
        const std::string flags = std::string("--train-iters 5 --dataloader-type ") + sampler;
        expect_same_training(run(flags + " --num-workers 0"), run(flags + " --num-workers 3"));
    }
}

TEST_F(TrainerLaws, RecomputeDoesNotChangeABit) {
    // Dropout is on by default: a rebuilt activation must meet the same masks.
    const std::string flags = "--train-iters 4 --num-layers 3 ";
    const RunRecord kept = run(flags);
    for (const char* how : {"--recompute-activations", "--recompute-granularity selective",
                            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
                            "--recompute-granularity full --recompute-method uniform --recompute-num-layers 2",
                            "--recompute-granularity full --recompute-method block --recompute-num-layers 2"}) {
        SCOPED_TRACE(how);
        expect_same_training(kept, run(flags + how));
    }
}

TEST_F(TrainerLaws, SeedsAndDropoutMatter) {
    const RunRecord a = run("--train-iters 2 --seed 1"), b = run("--train-iters 2 --seed 2");
    EXPECT_NE(a.losses, b.losses);
    const RunRecord none = run("--train-iters 2 --seed 1 --hidden-dropout 0 --attention-dropout 0");
    EXPECT_NE(a.losses, none.losses);
}

/// Eight iterations at once against five, a stop, and three more.
class SlowTrainerResume : public TrainerRuns {};

const char* const changing =
    "--train-iters 8 --lr-warmup-iters 2 --eval-interval 3 --eval-iters 1 --weight-decay-incr-style linear "
    "--start-weight-decay 0 --end-weight-decay 0.1 ";

TEST_F(TrainerResume, IsNoStopBitForBit) { expect_resume_is_no_stop(changing); }
TEST_F(TrainerResume, IsNoStopInBf16) { expect_resume_is_no_stop(std::string(changing) + "--bf16 "); }

TEST_F(SlowTrainerResume, IsNoStopWhateverTheModelOptimizerAndSampler) {
    const std::string kinds[] = {
        "--swiglu --position-embedding-type rope --normalization RMSNorm "
        "--untie-embeddings-and-output-weights --disable-bias-linear ",
        "--optimizer sgd --lr 0.1 ", "--optimizer ademamix --ademamix-alpha-warmup 6 --ademamix-beta3-warmup 6 ",
        "--dataloader-type cyclic --lr-decay-style WSD --lr-wsd-decay-iters 4 ",
        "--bf16 --loss-scale 1024 --calculate-per-token-loss --eod-mask-loss "};
    for (const std::string& kind : kinds) {
        SCOPED_TRACE(kind);
        expect_resume_is_no_stop(changing + kind);
    }
}

/// A corpus of documents of uneven length, each a walk through the vocabulary and then end of document (id 100).
void write_corpus(const std::string& prefix, int documents, int step) {
    IndexedDatasetWriter writer(prefix, TokenType::u16);
    for (int d = 0; d < documents; ++d) {
        std::vector<std::int32_t> ids;
        for (int i = 0; i < 5 + 7 * d % 40; ++i) ids.push_back((d + step * i) % 100);
        ids.push_back(100);
        writer.add_sequence(ids);
        writer.end_document();
    }
    writer.finish();
}

TEST_F(TrainerResume, IsNoStopOnFilesOverSeveralEpochs) {
    write_corpus(folder + "/a", 20, 1);
    write_corpus(folder + "/b", 12, 3);
    std::string flags = changing;
    flags += "--split 80,10,10 --global-batch-size 8 --reset-position-ids --reset-attention-mask --eod-mask-loss ";
    flags += "--num-workers 2 --data-path 0.7 " + folder + "/a 0.3 " + folder + "/b ";
    data = "";
    expect_resume_is_no_stop(flags);
    const RunRecord record = run(flags);
    EXPECT_LT(record.losses.back(), record.losses.front());
    EXPECT_TRUE(record.printed(folder + "/b: weight 0.3"));
}

TEST_F(TrainerResume, AnotherPaddingOfTheVocabularyIsSaid) {
    const std::string save = "--save " + folder + "/ck --load " + folder + "/ck --save-interval 1 --train-iters 2 ";
    run(save + "--make-vocab-size-divisible-by 128 --exit-interval 1");
    EXPECT_TRUE(run(save + "--make-vocab-size-divisible-by 256 --exit-interval 2")
                    .printed("the padded vocabulary changes from 128 to 256"));
    EXPECT_FALSE(run(save + "--make-vocab-size-divisible-by 64 --ckpt-step 1").printed("padded vocabulary changes"))
        << "the same size, come by otherwise";
}

TEST_F(TrainerResume, ContinuesTheMetricsFileAndSaysWhatChanged) {
    const std::string save = "--save " + folder + "/ck --load " + folder + "/ck --save-interval 2 --train-iters 4 ";
    run(save + "--exit-interval 3");  // saved at 2 and at 3
    std::filesystem::remove_all(folder + "/ck/iter_0000003");
    std::ofstream(folder + "/ck/latest_checkpointed_iteration.txt") << "2";
    const RunRecord record = run(save + "--clip-grad 0.5");
    EXPECT_TRUE(record.printed("--clip-grad changes from 1.0 to 0.5"));
    EXPECT_TRUE(record.printed("dropped 1 lines of iterations after 2"));
    ASSERT_EQ(record.metrics.size(), 5u);  // 1, 2, resume, 3, 4
    EXPECT_EQ(record.metrics[2]["event"], "resume");
    EXPECT_EQ(record.metrics[3]["iteration"], 3);
    EXPECT_NE(failure(save + "--hidden-size 64").find("--hidden-size 64 differs from the checkpoint's 32"),
              std::string::npos);
    EXPECT_NE(failure(save + "--min-lr 1e-3").find("--override-opt_param-scheduler"), std::string::npos);
    EXPECT_TRUE(run(save + "--min-lr 1e-3 --override-opt_param-scheduler").finished);
}

TEST_F(TrainerResume, FinetuneTakesTheWeightsOnly) {
    const std::string ck = folder + "/ck";
    const RunRecord first =
        run("--train-iters 3 --save " + ck + " --save-interval 3 --hidden-dropout 0 --attention-dropout 0");
    const RunRecord tuned =
        run("--train-iters 2 --load " + ck + " --finetune --lr 0 --hidden-dropout 0 --attention-dropout 0");
    EXPECT_EQ(tuned.state.iteration, 2);
    EXPECT_EQ(tuned.state.consumed_train_samples, 8);
    EXPECT_EQ(first.weights, tuned.weights);
    const RunRecord fresh_optimizer =
        run("--train-iters 4 --load " + ck + " --no-load-optim --lr 0 --override-opt_param-scheduler");
    EXPECT_EQ(fresh_optimizer.state.iteration, 4);
    EXPECT_EQ(fresh_optimizer.state.consumed_train_samples, 16);
    for (const std::string& nothing : {folder + "/nowhere", folder})
        EXPECT_NE(failure("--train-iters 2 --finetune --load " + nothing).find("holds no checkpoint and no model"),
                  std::string::npos);
}

/// Of a blend without weights each sample comes once.
TEST_F(TrainerResume, DataThatEndsTooSoonIsKnownBeforeTheFirstStep) {
    IndexedDatasetWriter writer(folder + "/few", TokenType::u16);
    for (int d = 0; d < 40; ++d) writer.add_document(std::vector<std::int32_t>(20, d), std::vector<std::int32_t>{20});
    writer.finish();
    data = "--data-path " + folder + "/few " + folder + "/few --split 60,40,0 ";
    EXPECT_TRUE(run("--train-iters 2 --eval-iters 1 --eval-interval 2 ").finished);
    const std::string train = failure("--train-iters 200 --eval-iters 1 --eval-interval 1000 ");
    EXPECT_NE(train.find("the train data has "), std::string::npos) << train;
    const std::string valid = failure("--train-iters 2 --eval-iters 200 --eval-interval 2 ");
    EXPECT_NE(valid.find("the valid data has "), std::string::npos) << valid;
    EXPECT_EQ(failure("--train-iters 2 --eval-iters 200 --eval-interval 2 --dataloader-type cyclic "), "no failure");
}

TEST_F(TrainerResume, MissingCheckpointIsSaidAndTrainingStarts) {
    const RunRecord record = run("--train-iters 1 --load " + folder + "/none");
    EXPECT_TRUE(record.printed("WARNING: could not find the metadata file"));
    EXPECT_TRUE(record.printed("    will not load any checkpoints and will start from random"));
    EXPECT_EQ(record.state.iteration, 1);
    EXPECT_NE(
        failure("--train-iters 1 --exit-on-missing-checkpoint --load " + folder + "/none").find("holds no checkpoint"),
        std::string::npos);
}

TEST_F(TrainerFlags, AccumulationIsTheSameObjective) {
    const std::string flags = "--train-iters 3 --hidden-dropout 0 --attention-dropout 0 ";
    const RunRecord four = run(flags + "--micro-batch-size 1"), one = run(flags + "--micro-batch-size 4");
    ASSERT_EQ(four.losses.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(four.losses[i], one.losses[i], 2e-5);
    EXPECT_TRUE(four.printed("setting number of microbatches to constant 4"));
}

TEST_F(TrainerFlags, PerTokenLossWeighsTokensNotMicroBatches) {
    // With the loss of end-of-document tokens masked, micro-batches differ in their number of tokens: then the mean of
    // means is another objective than the mean over all tokens, and only the latter does not depend on the cut.
    const std::string flags =
        "--train-iters 3 --hidden-dropout 0 --attention-dropout 0 --eod-mask-loss --seq-length 64 "
        "--max-position-embeddings 64 --global-batch-size 32 --vocab-size 10 --lr 0.1 --optimizer sgd ";
    const RunRecord cut = run(flags + "--calculate-per-token-loss --micro-batch-size 1");
    const RunRecord whole = run(flags + "--calculate-per-token-loss --micro-batch-size 32");
    const RunRecord means = run(flags + "--micro-batch-size 1");
    EXPECT_NEAR(cut.losses[2], whole.losses[2], 1e-5);
    EXPECT_NE(cut.losses[2], means.losses[2]);
    EXPECT_NEAR(cut.losses[2], means.losses[2], 1e-2);
}

TEST_F(TrainerFlags, ScheduleByTheLoggedLearningRate) {
    const RunRecord wsd =
        run("--train-iters 10 --lr 1e-3 --lr-warmup-iters 2 --lr-decay-style WSD --lr-wsd-decay-iters 4 "
            "--lr-wsd-decay-style linear");
    const char* expected[] = {"5.000000E-04", "1.000000E-03", "1.000000E-03", "1.000000E-03", "1.000000E-03",
                              "1.000000E-03", "7.500000E-04", "5.000000E-04", "2.500000E-04", "0.000000E+00"};
    for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(wsd.field("learning rate", i), expected[i]) << "iteration " << i + 1;
    // The first update of a warmed-up run has rate 0: it moves nothing.
    const RunRecord first = run("--train-iters 2 --lr 1e-3 --lr-warmup-iters 1 --exit-interval 1");
    const RunRecord none = run("--train-iters 1 --lr 0");
    EXPECT_EQ(first.weights, none.weights);
}

TEST_F(TrainerFlags, BatchRampSavesWhenItGrows) {
    const RunRecord record =
        run("--train-samples 24 --rampup-batch-size 2 2 8 --save-interval 100 --save " + folder + "/ck");
    // 2 + 2 + 2 + 2 samples, then (consumed 8 is not beyond the ramp) one more at start + increments, then full ones.
    EXPECT_TRUE(record.printed("setting training iterations to"));
    EXPECT_EQ(record.field("global batch size", 0), "2");
    EXPECT_EQ(record.field("global batch size", record.losses.size() - 1), "4");
    std::int64_t consumed = 0;
    for (std::size_t i = 0; i < record.losses.size(); ++i) {
        consumed += std::stoll(record.field("global batch size", i));
        EXPECT_EQ(record.field("consumed samples", i), std::to_string(consumed));
    }
    EXPECT_LE(consumed, 24);
    EXPECT_EQ(record.count("saving checkpoint at iteration"), 2) << "when the batch grows, and at the end";
}

TEST_F(TrainerFlags, SkippedIterationsConsumeTheirSamples) {
    const RunRecord record = run("--train-iters 4 --iterations-to-skip 1 2");
    EXPECT_EQ(record.losses.size(), 2u);
    EXPECT_EQ(record.state.consumed_train_samples, 16);
    EXPECT_EQ(record.state.schedule_samples, 8);
    EXPECT_EQ(record.field("skipped samples", 1), "8");
    EXPECT_EQ(record.metrics.back()["iteration"], 4);
}

TEST_F(TrainerFlags, EvaluationContinuesThroughItsData) {
    const RunRecord record = run("--train-iters 4 --eval-interval 2 --eval-iters 3 --lr 0");
    EXPECT_EQ(record.count(" validation loss at iteration 2 |"), 1);
    EXPECT_EQ(record.count(" validation loss at iteration 4 |"), 1);
    EXPECT_EQ(record.count(" validation loss at iteration 4 on validation set |"), 1);
    EXPECT_EQ(record.count(" validation loss at iteration 4 on test set |"), 1);
    EXPECT_EQ(record.count("Evaluating on 12 samples"), 2);
    EXPECT_EQ(record.state.consumed_valid_samples, 3 * 12);
    std::vector<double> losses;
    for (const auto& json : record.metrics) {
        if (json.contains("validation")) losses.push_back(json["validation"]["lm_loss"]);
    }
    ASSERT_EQ(losses.size(), 3u);
    EXPECT_NE(losses[0], losses[1]) << "same weights (rate 0), so equal losses would be equal samples";
    EXPECT_TRUE(
        run("--train-iters 2 --skip-train --eval-iters 1").printed("skipping training (--skip-train is on) ..."));
}

TEST_F(TrainerFlags, SecondLearningRateForTheEmbedding) {
    const RunRecord record = run("--train-iters 2 --lr 0 --decoupled-lr 1e-2 --weight-decay 0");
    const RunRecord still = run("--train-iters 2 --lr 0 --weight-decay 0");
    for (const auto& [name, bytes] : record.weights) {
        EXPECT_EQ(bytes == still.weights.at(name), name != "embedding.word.weight") << name;
    }
    EXPECT_EQ(record.field("decoupled learning rate", 0), "5.000000E-03");
}

TEST_F(TrainerFlags, MemoryIsSaidInPowersOfTwo) {
    const RunRecord record = run("--train-iters 1");
    // 30,080 weights and gradients of 4 bytes, and as many of Adam's two moments.
    EXPECT_TRUE(record.printed(" > memory: weights and gradients 0.23 MiB, optimizer 0.23 MiB, "));
}

TEST_F(TrainerFlags, ARunThatDivergesStopsWithALead) {
    const std::string text = failure("--train-iters 50 --lr 1e30 --clip-grad 0 --seed 3");
    EXPECT_NE(text.find("found NaN in local"), std::string::npos) << text;
    EXPECT_NE(text.find("in iteration "), std::string::npos) << text;
    EXPECT_NE(text.find("samples "), std::string::npos) << text;
    EXPECT_NE(text.find("; lower --lr, clip with --clip-grad 1, or look"), std::string::npos) << text;
    EXPECT_EQ(text.find("--bf16"), std::string::npos) << text;
}

TEST_F(TrainerFlags, AdviceOnOverflowsIsForTheNumbersOfTheRun) {
    const std::string constant = failure("--train-iters 1 --fp16 --loss-scale 4294967296");
    EXPECT_NE(constant.find("; lower --loss-scale 4294967296.0 or leave it out (it is then found between "
                            "--initial-loss-scale and --min-loss-scale), lower --lr or --clip-grad 1.0, use --bf16"),
              std::string::npos)
        << constant;
    // A dynamic scale stops no run, so that one line says it, once for all steps in a row.
    const RunRecord stuck = run("--train-iters 4 --fp16 --min-loss-scale 4294967296");
    EXPECT_EQ(stuck.count("WARNING: iteration "), 1);
    EXPECT_TRUE(
        stuck.printed("WARNING: iteration 1 updates nothing, and the loss scale cannot fall further: gradients "
                      "overflow; lower --min-loss-scale 4294967296.0, or use --bf16"));
    const RunRecord diverged = run("--train-iters 6 --fp16 --initial-loss-scale 1 --lr 1e30 --clip-grad 0 --seed 3");
    EXPECT_TRUE(diverged.printed("the loss is not finite; lower --lr, clip with --clip-grad 1, use --bf16"));
    EXPECT_FALSE(run("--train-iters 3 --fp16").printed("WARNING: iteration "));
}

TEST_F(TrainerFlags, RecordingsThatAreNotMadeAreSaid) {
    EXPECT_TRUE(run("--train-iters 1 --enable-cuda-graph")
                    .printed("--enable-cuda-graph changes nothing here: there are no CUDA graphs on the CPU"));
    EXPECT_FALSE(run("--train-iters 1").printed("--enable-cuda-graph"));
}

TEST_F(TrainerFlags, WhatIsNotBuiltIsRefusedBeforeAnythingElse) {
    RunConfig config = parse_run_config(
        ModelKind::gpt, words(base() + data + "--train-iters 1 --tensor-model-parallel-size 2"), Environment{0, 2, 0});
    validate_and_derive(config, 2);
    EXPECT_THROW(Trainer(config, {.print = [](const std::string&) {}}).run(), UsageError);
    if (Engine::gpus() == 0) {
        EXPECT_NE(failure("--train-iters 1 --device cuda").find("use --device cpu"), std::string::npos);
    }
    std::ofstream(folder + "/file") << "x";
    EXPECT_NE(failure("--train-iters 1 --save-interval 1 --save " + folder + "/file/ck").find(folder + "/file"),
              std::string::npos);
}

}  // namespace
}  // namespace tera
