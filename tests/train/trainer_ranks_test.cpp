// The trainer on several ranks: the same run as on one, whatever the layout, within the roundings of f32.
#include <mutex>

#include "comm/thread_comm.h"
#include "data/indexed_dataset_writer.h"
#include "support/expect_usage_error.h"
#include "train/trainer_fixture.h"

namespace tera {
namespace {

class TrainerOnRanks : public TrainerRuns {
  protected:
    /// Layers for four places of a pipeline, heads for four ranks, micro-batches of one sample.
    std::string model() const {
        return "--num-layers 4 --num-attention-heads 4 --micro-batch-size 1 --global-batch-size 8 --threads 1 "
               "--train-iters 4 --eval-iters 2 --eval-interval 3 --log-params-norm --log-num-zeros-in-grad ";
    }

    struct Ranks {
        RunRecord leader;
        std::map<int, std::vector<std::string>> lines;  ///< by rank
    };

    Ranks run_on(int ranks, const std::string& flags, const std::string& of_the_last_alone = "") {
        Ranks result;
        std::mutex mutex;
        run_on_threads(ranks, [&](Comm& world) {
            const std::string also = world.rank() == ranks - 1 ? of_the_last_alone : "";
            RunConfig config = parse_run_config(ModelKind::gpt, words(base() + data + model() + flags + also),
                                                {world.rank(), ranks, world.rank()});
            validate_and_derive(config, ranks);
            TrainerOptions options;
            options.world = &world;
            options.print = [&](const std::string& line) {
                const std::lock_guard lock(mutex);
                result.lines[world.rank()].push_back(line);
            };
            Trainer trainer(config, options);
            const bool finished = trainer.run();
            if (world.rank() == 0) result.leader.finished = finished, result.leader.state = trainer.state();
        });
        result.leader.lines = result.lines[0];
        std::ifstream in(folder + "/metrics.jsonl");
        for (std::string line; std::getline(in, line);) result.leader.metrics.push_back(nlohmann::json::parse(line));
        return result;
    }

    /// What two ranks say, of which the last has flags of its own.
    std::string refusal(const std::string& of_all, const std::string& of_the_last) {
        try {
            run_on(2, of_all, of_the_last);
        } catch (const UsageError& e) {
            return e.what();
        }
        return "nothing was refused";
    }

    static double number(const nlohmann::json& json, const char* key) { return json.at(key).get<double>(); }

    static void expect_same_run(const RunRecord& many, const RunRecord& one) {
        EXPECT_TRUE(many.finished);
        ASSERT_EQ(many.metrics.size(), one.metrics.size());
        // Rounding in f32: ranks add in another order, and compilers choose other instructions. Adam divides by the
        // root of the second moment, so weights whose gradient is hardly more than rounding take steps of their own;
        // losses feel that in second order, norms of gradients in first. (In f64 the same runs agree to 1e-12, see
        // parity.)
        constexpr double of_losses = 2e-6, of_norms = 2e-5;
        const auto near = [](const nlohmann::json& x, const nlohmann::json& y, double bound) {
            EXPECT_NEAR(x.get<double>(), y.get<double>(), bound * y.get<double>());
        };
        int evaluations = 0;
        for (std::size_t i = 0; i < one.metrics.size(); ++i) {
            SCOPED_TRACE(one.metrics[i].dump());
            const auto &a = many.metrics[i], &b = one.metrics[i];
            EXPECT_EQ(a.at("iteration"), b.at("iteration"));
            if (b.contains("validation")) {
                near(a.at("validation").at("lm_loss"), b["validation"]["lm_loss"], of_losses);
                ++evaluations;
            } else if (b.contains("lm_loss")) {
                near(a.at("lm_loss"), b["lm_loss"], of_losses);
                near(a.at("grad_norm"), b["grad_norm"], of_norms);
                EXPECT_EQ(a.at("consumed_samples"), b["consumed_samples"]);
            }
        }
        EXPECT_GT(evaluations, 0);
        for (std::size_t n = 0; n < 4; ++n) {
            const std::string norm = one.field("params norm", n);
            EXPECT_EQ(many.field("params norm", n), norm);
            EXPECT_GT(std::stod(norm), 0);
        }
        EXPECT_EQ(many.state.consumed_train_samples, one.state.consumed_train_samples);
    }

    void expect_layout(int ranks, const std::string& layout, const std::string& also = "") {
        SCOPED_TRACE(layout);
        const RunRecord one = run(model() + also);
        ASSERT_GT(one.metrics.size(), 4u);
        expect_same_run(run_on(ranks, layout + also).leader, one);
    }
};

TEST_F(TrainerOnRanks, tensor_and_sequence_parallel) {
    expect_layout(2, "--tensor-model-parallel-size 2 --sequence-parallel --make-vocab-size-divisible-by 64 ");
}

TEST_F(TrainerOnRanks, data_parallel_and_distributed_optimizer) {
    expect_layout(2, "");
    expect_layout(4, "--use-distributed-optimizer ", "--calculate-per-token-loss ");
}

TEST_F(TrainerOnRanks, shuffled_epochs) { expect_layout(2, "", "--dataloader-type cyclic --no-data-sharding "); }

TEST_F(TrainerOnRanks, interleaved_pipeline) {
    const std::string layout = "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 ";
    expect_layout(2, layout);
    EXPECT_TRUE(
        run_on(2, layout + "--log-format core-0.12 ").leader.printed("Number of virtual stages per pipeline stage: 2"));
}

TEST_F(TrainerOnRanks, context_parallel_with_documents) {
    expect_layout(2, "--context-parallel-size 2 ", "--reset-position-ids --reset-attention-mask ");
    expect_layout(2, "--context-parallel-size 2 --cp-comm-type allgather ",
                  "--reset-position-ids --reset-attention-mask ");
}

using SlowTrainerOnRanks = TrainerOnRanks;

TEST_F(SlowTrainerOnRanks, all_at_once) {
    expect_layout(16,
                  "--tensor-model-parallel-size 2 --sequence-parallel --context-parallel-size 2 "
                  "--pipeline-model-parallel-size 2 --use-distributed-optimizer --make-vocab-size-divisible-by 64 ",
                  "--untie-embeddings-and-output-weights --swiglu --position-embedding-type rope ");
}

TEST_F(TrainerOnRanks, bf16_with_main_weights) {
    const std::string flags = "--bf16 --eval-iters 0 ";
    const RunRecord one = run(model() + flags);
    const RunRecord many =
        run_on(4, flags +
                      "--tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer "
                      "--make-vocab-size-divisible-by 64 ")
            .leader;
    ASSERT_EQ(many.metrics.size(), one.metrics.size());
    for (std::size_t i = 0; i < one.metrics.size(); ++i) {  // within one rounding of bf16
        const double loss = number(one.metrics[i], "lm_loss");
        EXPECT_NEAR(number(many.metrics[i], "lm_loss"), loss, loss / 256);
    }
}

TEST_F(TrainerOnRanks, rank_0_speaks_for_all) {
    const Ranks ranks =
        run_on(4, "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --make-vocab-size-divisible-by 64 ");
    EXPECT_TRUE(ranks.leader.printed("using world size: 4, data-parallel size: 1"));
    EXPECT_EQ(ranks.leader.count("| number of skipped"), 4);
    for (const auto& [rank, lines] : ranks.lines) {
        RunRecord record;
        record.lines = lines;
        EXPECT_EQ(record.count("number of parameters on (tensor, pipeline) model parallel rank (" +
                               std::to_string(rank % 2) + ", " + std::to_string(rank / 2) + ")"),
                  1);
        EXPECT_EQ(record.count(" > layers on pipeline stage"), rank % 2 == 0 ? 1 : 0);
        if (rank > 0) {
            EXPECT_EQ(record.count("building GPT model"), 0);
        }
    }
}

/// Every file of tensors in a checkpoint.
std::map<std::string, std::string> tensor_files(const std::string& folder) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.path().extension() != ".safetensors") continue;
        std::stringstream bytes;
        bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
        files[std::filesystem::relative(entry.path(), folder).string()] = bytes.str();
    }
    return files;
}

/// A layout, and flags for it and for one rank.
struct Layout {
    int ranks;
    std::string layout, also;
};

class CheckpointsOnRanks : public TrainerOnRanks {
  protected:
    /// What one rank has written is read by the layout, written, and read by one rank again: not a bit has changed.
    void expect_round_trip(const Layout& c) {
        SCOPED_TRACE(c.layout + c.also);
        const auto at = [&](const char* name) { return " --save-interval 100 --save " + folder + "/" + name + " "; };
        const auto from = [&](const char* name) { return "--load " + folder + "/" + name + " "; };
        const std::string common = "--train-iters 2 --eval-iters 0 --group-query-attention --num-query-groups 2 ";
        run(model() + common + c.also + at("one"));
        const Ranks many = run_on(c.ranks, common + c.also + c.layout + from("one") + at("many"));
        EXPECT_TRUE(many.leader.printed("successfully loaded checkpoint"));
        run(model() + common + c.also + from("many") + at("again"));
        const auto files = tensor_files(folder + "/one/iter_0000002");
        EXPECT_GE(files.size(), 4u);
        EXPECT_EQ(tensor_files(folder + "/many/iter_0000002"), files);
        EXPECT_EQ(tensor_files(folder + "/again/iter_0000002"), files);
    }
};
using SlowCheckpointsOnRanks = CheckpointsOnRanks;

TEST_F(CheckpointsOnRanks, tensor_and_pipeline_parallel) {
    expect_round_trip({4,
                       "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
                       "--num-layers-per-virtual-pipeline-stage 1 --make-vocab-size-divisible-by 64 ",
                       "--bf16 --swiglu --position-embedding-type rope --normalization RMSNorm --disable-bias-linear "
                       "--untie-embeddings-and-output-weights "});
}

TEST_F(CheckpointsOnRanks, distributed_optimizer) { expect_round_trip({2, "--use-distributed-optimizer ", "--bf16 "}); }

TEST_F(SlowCheckpointsOnRanks, shared_key_value_heads) {
    expect_round_trip({4, "--tensor-model-parallel-size 4 --sequence-parallel --make-vocab-size-divisible-by 32 ", ""});
}

TEST_F(SlowCheckpointsOnRanks, all_at_once) {
    expect_round_trip({16,
                       "--tensor-model-parallel-size 2 --context-parallel-size 2 --pipeline-model-parallel-size 2 "
                       "--use-distributed-optimizer --make-vocab-size-divisible-by 64 ",
                       ""});
}

TEST_F(TrainerOnRanks, a_run_goes_on_bit_for_bit_and_on_another_layout) {
    const std::string layout = "--tensor-model-parallel-size 2 --sequence-parallel --use-distributed-optimizer " +
                               std::string("--make-vocab-size-divisible-by 64 --eval-iters 0 ");
    const std::string save = "--save-interval 100 --save " + folder + "/ck --load " + folder + "/ck ";
    const Ranks whole = run_on(4, layout);
    const Ranks first = run_on(4, layout + save + "--exit-interval 2 ");
    EXPECT_FALSE(first.leader.finished);
    std::filesystem::copy(folder + "/ck", folder + "/copy", std::filesystem::copy_options::recursive);
    const Ranks second = run_on(4, layout + save);
    for (std::size_t n = 0; n < 2; ++n) {
        EXPECT_EQ(second.leader.field("lm loss", n), whole.leader.field("lm loss", n + 2));
        EXPECT_EQ(second.leader.field("grad norm", n), whole.leader.field("grad norm", n + 2));
    }
    const Ranks other = run_on(2, "--pipeline-model-parallel-size 2 --eval-iters 0 --load " + folder + "/copy ");
    for (std::size_t n = 0; n < 2; ++n) {
        const double loss = std::stod(whole.leader.field("lm loss", n + 2));
        EXPECT_NEAR(std::stod(other.leader.field("lm loss", n)), loss, 2e-6 * loss);
    }
}

TEST_F(TrainerOnRanks, a_trigger_that_one_rank_sees_stops_all) {
    const std::string trigger = folder + "/trigger";
    std::filesystem::create_directories(trigger);
    std::ofstream(trigger + "/exit") << "";
    const Ranks ranks = run_on(2, "", "--trigger-path " + trigger + " ");
    EXPECT_FALSE(ranks.leader.finished);
    EXPECT_EQ(ranks.leader.state.iteration, 1);
}

/// One machine does not see the checkpoint, or has other data: that would train something else, without an error.
TEST_F(TrainerOnRanks, what_one_rank_finds_all_must_find) {
    const std::string save = folder + "/ck";
    run_on(2, "--exit-interval 2 --save-interval 2 --save " + save + " ");
    EXPECT_NE(refusal("--load " + save + " ", "--load " + folder + "/unmounted ").find("the iteration found in --load"),
              std::string::npos);
    EXPECT_NE(refusal("", "--seed 7 ").find("--seed"), std::string::npos);
    for (const int documents : {40, 41}) {
        IndexedDatasetWriter writer(folder + "/" + std::to_string(documents), TokenType::u16);
        for (int d = 0; d < documents; ++d)
            writer.add_document(std::vector<std::int32_t>(40, d), std::vector<std::int32_t>{40});
        writer.finish();
    }
    data = "";
    const std::string here = "--split 80,10,10 --data-path " + folder + "/40 ";
    EXPECT_TRUE(run_on(2, here).leader.finished);
    EXPECT_NE(refusal(here, "--data-path " + folder + "/41 ").find("the train data"), std::string::npos);
}

TEST_F(TrainerOnRanks, other_weights_or_another_vocabulary_on_one_rank_are_refused) {
    namespace fs = std::filesystem;
    for (const char* seed : {"1", "2"}) {
        const std::string save = folder + "/ck" + seed;
        run_on(2, cat("--seed ", seed, " --exit-interval 2 --save-interval 2 --save ", save, " "));
        fs::copy(save, save + "_moved", fs::copy_options::recursive);
        fs::copy(save + "/iter_0000002", folder + "/model" + seed);
    }
    const auto load = [&](const std::string& name) { return "--finetune --load " + folder + "/" + name + " "; };
    EXPECT_TRUE(run_on(2, load("ck1"), load("ck1_moved")).leader.finished) << "only elsewhere";
    EXPECT_TRUE(run_on(2, load("model1")).leader.finished);
    for (const char* kind : {"ck", "model"})
        EXPECT_NE(refusal(load(cat(kind, 1)), load(cat(kind, 2))).find("the checkpoint found is "), std::string::npos)
            << kind;
    const auto vocabulary = [&](const char* name, const std::string& content) {
        std::ofstream(folder + "/" + name) << content;
        std::ofstream(folder + "/merges.txt") << "#version: 0.2\n";
        return cat("--tokenizer-type GPT2BPETokenizer --merge-file ", folder, "/merges.txt --vocab-file ", folder, "/",
                   name, " ");
    };
    const std::string small = vocabulary("small", R"({"a": 0, "<|endoftext|>": 1})");
    EXPECT_NE(
        refusal(small, vocabulary("large", R"({"a": 0, "<|endoftext|>": 1, "b": 2})")).find("the size of the voc"),
        std::string::npos);
    EXPECT_NE(refusal(small, vocabulary("turned", R"({"a": 1, "<|endoftext|>": 0})")).find("the end of documents"),
              std::string::npos);
}

/// A batch that the ranks cannot share is made smaller, in evaluation too, and what was seen of the validation data is
/// counted as it was.
TEST_F(TrainerOnRanks, validation_goes_on_where_it_was_with_a_decreased_batch) {
    const std::string flags = "--global-batch-size 7 --decrease-batch-size-if-needed --train-iters 6 --eval-iters 1 ",
                      save = folder + "/ck";
    const RunRecord whole = run_on(2, flags).leader;
    EXPECT_EQ(whole.state.consumed_valid_samples, 3 * 6) << "after iterations 3 and 6, and at the end";
    run_on(2, flags + "--exit-interval 4 --save-interval 4 --save " + save + " ");
    const RunRecord resumed = run_on(2, flags + "--load " + save + " ").leader;
    EXPECT_EQ(resumed.state.consumed_valid_samples, whole.state.consumed_valid_samples);
    const auto last_validation = [](const RunRecord& run) {
        double loss = 0;
        for (const nlohmann::json& m : run.metrics)
            if (m.contains("validation")) loss = number(m["validation"], "lm_loss");
        return loss;
    };
    EXPECT_EQ(last_validation(resumed), last_validation(whole));
}

TEST_F(TrainerOnRanks, what_does_not_fit_is_refused) {
    const auto refusal = [&](int ranks, const std::string& flags) -> std::string {
        try {
            run_on(ranks, flags);
        } catch (const UsageError& e) {
            return e.what();
        }
        return "nothing was refused";
    };
    EXPECT_NE(refusal(2, "--tensor-model-parallel-size 3 ").find("world size 2"), std::string::npos);
    RunConfig two = parse_run_config(ModelKind::gpt, words(base() + data + model()), {0, 2, 0});
    validate_and_derive(two, 2);
    expect_usage_error([&] { Trainer(two, {.print = [](const std::string&) {}}).run(); },
                       {"world size 2", "launch local"});
}

}  // namespace
}  // namespace tera
