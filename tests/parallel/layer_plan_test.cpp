#include "parallel/layer_plan.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "support/expect_usage_error.h"

namespace tera {
namespace {

using Counts = std::vector<std::int64_t>;

/// "first+count" of every chunk of a stage.
std::string text_of(const std::vector<LayerRange>& chunks) {
    std::string out;
    for (const LayerRange& chunk : chunks) out += (out.empty() ? "" : " ") + cat(chunk.first, "+", chunk.count);
    return out;
}

LayerPlanRequest request(std::int64_t layers, std::int64_t stages, std::int64_t chunks = 1) {
    LayerPlanRequest r;
    r.layers = layers;
    r.stages = stages;
    r.chunks = chunks;
    return r;
}

TEST(LayerPlan, SplitsEvenlyInOrder) {
    const LayerPlan plan = plan_layers(request(36, 2));
    EXPECT_EQ(plan.layers_per_stage(), (Counts{18, 18}));
    EXPECT_EQ(text_of(plan.stages[0]), "0+18");
    EXPECT_EQ(text_of(plan.stages[1]), "18+18");
}

TEST(LayerPlan, InterleavesChunks) {
    // Chunk v of stage p holds n = L/(P·V) layers from v·(L/V) + p·n.
    const LayerPlan plan = plan_layers(request(80, 8, 2));
    EXPECT_EQ(text_of(plan.stages[0]), "0+5 40+5");
    EXPECT_EQ(text_of(plan.stages[3]), "15+5 55+5");
    EXPECT_EQ(text_of(plan.stages[7]), "35+5 75+5");
}

TEST(LayerPlan, RefusesWhatDoesNotDivide) {
    EXPECT_THROW(plan_layers(request(80, 6)), UsageError);
    EXPECT_THROW(plan_layers(request(80, 8, 3)), UsageError);
}

TEST(LayerPlan, TakesTheEndsAsGiven) {
    LayerPlanRequest r = request(80, 4);
    r.first_stage = 19;
    r.last_stage = 17;
    EXPECT_EQ(plan_layers(r).layers_per_stage(), (Counts{19, 22, 22, 17}));
    r.last_stage.reset();
    r.first_stage = 20;
    EXPECT_EQ(plan_layers(r).layers_per_stage(), (Counts{20, 20, 20, 20}));
    r.first_stage = 19;
    EXPECT_THROW(plan_layers(r), UsageError);
    r = request(5, 2);
    r.first_stage = 3;
    r.last_stage = 2;
    EXPECT_EQ(plan_layers(r).layers_per_stage(), (Counts{3, 2}));
    r.last_stage = 1;  // 4 of 5 layers: the silent loss users fear most
    EXPECT_THROW(plan_layers(r), UsageError);
}

TEST(LayerPlan, SaysWhatIsWrongWithEndsByTheFlagsGiven) {
    const auto said = [](std::int64_t stages, std::optional<std::int64_t> first, std::optional<std::int64_t> last) {
        LayerPlanRequest r = request(8, stages);
        r.first_stage = first;
        r.last_stage = last;
        try {
            plan_layers(r);
        } catch (const UsageError& e) {
            return std::string(e.what());
        }
        return std::string();
    };
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(said(4, 4, {}),
              "--decoder-first-pipeline-num-layers 4 leave 4 of 8 layers for 3 stages: they must split evenly");
    EXPECT_EQ(said(2, 3, 4),
              "--decoder-first-pipeline-num-layers 3 and --decoder-last-pipeline-num-layers 4 leave 1 of 8 layers "
              "without a stage");
    EXPECT_EQ(said(4, {}, 9), "--decoder-last-pipeline-num-layers 9: there are only 8 layers");
    EXPECT_NE(said(4, most, most).find("there are only 8 layers"), std::string::npos);
    EXPECT_NE(said(1, 4, 4).find("need two stages; --pipeline-model-parallel-size is 1"), std::string::npos);
}

TEST(LayerPlan, InterleavesUnevenEnds) {
    LayerPlanRequest r = request(20, 3, 2);
    r.first_stage = 4;
    r.last_stage = 6;
    const LayerPlan plan = plan_layers(r);
    EXPECT_EQ(text_of(plan.stages[0]), "0+2 10+2");
    EXPECT_EQ(text_of(plan.stages[1]), "2+5 12+5");
    EXPECT_EQ(text_of(plan.stages[2]), "7+3 17+3");
}

TEST(LayerPlan, CountsEmbeddingAndLossAsLayers) {
    LayerPlanRequest r = request(30, 4);
    r.count_embedding = r.count_loss = true;
    EXPECT_EQ(plan_layers(r).layers_per_stage(), (Counts{7, 8, 8, 7}));
    r.chunks = 2;
    const LayerPlan plan = plan_layers(r);
    EXPECT_EQ(text_of(plan.stages[0]), "0+3 15+4");
    EXPECT_EQ(text_of(plan.stages[1]), "3+4 19+4");
    EXPECT_EQ(text_of(plan.stages[3]), "11+4 27+3");
    r.count_loss = false;
    expect_usage_error([&] { plan_layers(r); }, {"31 layers (30 and the embedding) do not split evenly"});
}

TEST(LayerPlan, EmbeddingOrLossMayStandAlone) {
    LayerPlanRequest r = request(2, 4);
    r.count_embedding = r.count_loss = true;
    EXPECT_EQ(plan_layers(r).layers_per_stage(), (Counts{0, 1, 1, 0}));
    r = request(4, 3);
    r.first_stage = 0;
    EXPECT_EQ(plan_layers(r).layers_per_stage(), (Counts{0, 2, 2}));
}

TEST(LayerPlan, RefusesStagesAndChunksWithNothing) {
    LayerPlanRequest r = request(4, 3);
    r.first_stage = r.last_stage = 2;
    expect_usage_error([&] { plan_layers(r); }, {"pipeline stage 1 would hold nothing"});
    r = request(4, 2, 2);  // the first chunk of the first stage has the embedding, the second has not
    r.first_stage = 0;
    expect_usage_error([&] { plan_layers(r); }, {"chunk 1 of pipeline stage 0 would hold nothing"});
    r = request(4, 2, 2);
    r.last_stage = 0;
    expect_usage_error([&] { plan_layers(r); }, {"chunk 0 of pipeline stage 1 would hold nothing"});
}

}  // namespace
}  // namespace tera
