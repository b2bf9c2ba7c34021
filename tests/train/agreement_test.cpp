// Ranks that were not started alike say so before they train.
#include "train/agreement.h"

#include <gtest/gtest.h>

#include "comm/thread_comm.h"
#include "core/engine.h"
#include "core/error.h"
#include "support/words.h"

namespace tera {
namespace {

/// What each rank was told; "" for nothing.
std::vector<std::string> told(int ranks, const std::function<std::vector<Fact>(int)>& facts) {
    std::vector<std::string> lines(static_cast<std::size_t>(ranks));
    run_on_threads(ranks, [&](Comm& world) {
        Arena arena;
        ThreadPool pool(1);
        try {
            require_agreement(world, Engine().exec(arena, pool), facts(world.rank()));
        } catch (const UsageError& e) {
            lines[static_cast<std::size_t>(world.rank())] = e.what();
        }
    });
    return lines;
}

TEST(Agreement, WhoDiffersSaysSoAndTheOthersNameIt) {
    const auto same = told(3, [](int) { return std::vector<Fact>{{"--seed", "7"}, {"--lr", "0.1"}}; });
    EXPECT_EQ(same, (std::vector<std::string>{"", "", ""}));
    const auto lines = told(4, [](int rank) {
        return std::vector<Fact>{
            {"--seed", "7"}, {"--lr", rank >= 2 ? "0.2" : "0.1"}, {"--bf16", rank == 3 ? "1" : "0"}};
    });
    for (const int other : {0, 1})
        EXPECT_EQ(lines[static_cast<std::size_t>(other)],
                  "--lr is not the same on rank 2 as on rank 0, where it is 0.1; every rank needs the same");
    for (const int differs : {2, 3})
        EXPECT_EQ(lines[static_cast<std::size_t>(differs)],
                  "--lr is 0.2 on this rank, and something else on rank 0; every rank needs the same");
}

TEST(Agreement, FlagsMustBeTheSameAndPlacesNeedNot) {
    const std::string base =
        "--num-layers 2 --hidden-size 32 --num-attention-heads 4 --seq-length 16 --max-position-embeddings 16 "
        "--micro-batch-size 1 --global-batch-size 8 --tokenizer-type NullTokenizer --vocab-size 100 --lr 0.1 "
        "--train-iters 2 --data-path here ";
    const auto with_on_rank_1 = [&](const std::string& flags) {
        return told(2, [&](int rank) {
            RunConfig config =
                parse_run_config(ModelKind::gpt, words(base + (rank == 1 ? flags : "")), {rank, 2, rank});
            validate_and_derive(config, 2);
            return flags_to_share(config);
        });
    };
    const auto line_of_rank_1 = [&](const std::string& flags) { return with_on_rank_1(flags)[1]; };
    for (const char* allowed :
         {"", "--data-path there", "--threads 3", "--num-workers 0", "--metrics-file m", "--no-masked-softmax-fusion"})
        EXPECT_EQ(line_of_rank_1(allowed), "") << allowed;
    for (const char* refused :
         {"--seed 7", "--lr 0.2", "--global-batch-size 4", "--weight-decay 0.3", "--clip-grad 0.3", "--bf16",
          "--eval-iters 1", "--hidden-dropout 0", "--split 50,40,10", "--tensor-model-parallel-size 2",
          "--save s --save-interval 2", "--load elsewhere", "--dataloader-type cyclic"})
        EXPECT_NE(line_of_rank_1(refused).find("on this rank, and something else on rank 0"), std::string::npos)
            << refused << ": " << line_of_rank_1(refused);
    const std::string line_of_rank_0 = with_on_rank_1("--exit-interval 3")[0];
    EXPECT_NE(line_of_rank_0.find("on rank 0, where it is not given;"), std::string::npos) << line_of_rank_0;
    EXPECT_EQ(line_of_rank_1("--no-data-sharding").find("--no-data-sharding is true on this rank"), 0U)
        << line_of_rank_1("--no-data-sharding");
}

/// One sample.
struct Sample : SampleDataset {
    explicit Sample(std::int32_t first) : first_id(first) {}
    std::int64_t size() const override { return 1; }
    std::int64_t sample_length() const override { return 3; }
    std::int32_t read(std::int64_t, std::int32_t* out) const override { return out[0] = out[1] = out[2] = first_id, 0; }
    std::int32_t first_id;
};

GptData blend(const std::vector<SourceReport>& sources, std::int32_t first_id = 7) {
    GptData data;
    data.sources = sources;
    data.samples = std::make_shared<Sample>(first_id);
    return data;
}

SourceReport source(double weight, std::int64_t sequences, std::int64_t tokens) {
    SourceReport report;
    report.weight = weight;
    report.sequences = sequences;
    report.tokens = tokens;
    return report;
}

TEST(Agreement, DataIsTheSameWhereverItLiesIfItsDatasetsWeightsAndOrderAre) {
    const SourceReport a = source(0.5, 10, 100), b = source(0.5, 20, 100);
    SourceReport moved = b;
    moved.path = "elsewhere";
    const auto line_of_rank_1 = [&](const std::vector<SourceReport>& sources, std::int32_t first_id = 7) {
        return told(2, [&](int rank) {
            GptDatasets all;
            all.train = rank == 1 ? blend(sources, first_id) : blend({a, b});
            all.valid = blend({a});
            return facts_of(all);
        })[1];
    };
    EXPECT_EQ(line_of_rank_1({a, moved}), "");
    const std::vector<std::vector<SourceReport>> others = {
        {source(0.75, 10, 100), source(0.25, 20, 100)}, {b, a}, {a}, {a, source(0.5, 21, 100)}, {a, b, b}};
    for (const std::vector<SourceReport>& other : others)
        EXPECT_EQ(line_of_rank_1(other).find("the train data is 1 samples "), 0U) << line_of_rank_1(other);
    EXPECT_EQ(line_of_rank_1({a, b}, 8).find(
                  "the train data is 1 samples that begin with the ids 8 8 8 (the ids of 1 of them "),
              0U)
        << line_of_rank_1({a, b}, 8);
    EXPECT_LT(line_of_rank_1(std::vector(300, a)).size(), 700U);
}

/// As many samples as of a real run; `other` has other ids than the rest would let expect.
class Samples : public SampleDataset {
  public:
    Samples(std::int64_t size, std::int64_t other) : size_(size), other_(other) {}
    std::int64_t size() const override { return size_; }
    std::int64_t sample_length() const override { return 4; }
    std::int32_t read(std::int64_t i, std::int32_t* out) const override {
        TERA_CHECK(i >= 0 && i < size_, i);
        for (std::int32_t k = 0; k < 4; ++k) out[k] = static_cast<std::int32_t>(i) + k + (i >= other_);
        return 0;
    }

  private:
    std::int64_t size_, other_;
};

TEST(Agreement, OtherIdsInFilesOfTheSameSizesAreSeen) {
    for (const std::int64_t size : {1, 2, 31, 32, 33, 1000000}) {
        const auto line_of_rank_1 = [&](std::int64_t other) {
            return told(2, [&](int rank) {
                GptDatasets all;
                all.train.emplace();
                all.train->samples = std::make_shared<Samples>(size, rank == 1 ? other : size);
                return facts_of(all);
            })[1];
        };
        EXPECT_EQ(line_of_rank_1(size), "") << size;
        for (const std::int64_t other : {std::int64_t{0}, size / 2, size - 1})
            EXPECT_EQ(line_of_rank_1(other).find("the train data is "), 0U) << other << " of " << size;
    }
}

}  // namespace
}  // namespace tera
