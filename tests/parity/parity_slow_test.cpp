// All layouts that fit 16 ranks: TP {1,2,4} × SP × PP {1,2,4} × interleaving {1,2} × CP {1,2} × DP {1,2} × distributed
// optimizer × recompute × tied or not × fewer key/value heads. One test for each mesh.
#include "support/parity.h"

namespace tera::test {
namespace {

struct MeshCase {
    int tp, pp, chunks, cp, dp;
};

std::vector<MeshCase> all_meshes() {
    std::vector<MeshCase> all;
    for (const int tp : {1, 2, 4})
        for (const int pp : {1, 2, 4})
            for (const int chunks : {1, 2})
                for (const int cp : {1, 2})
                    for (const int dp : {1, 2})
                        if (tp * pp * cp * dp <= 16 && (pp > 1 || chunks == 1)) all.push_back({tp, pp, chunks, cp, dp});
    return all;
}

ModelConfig model_of(bool tied, bool few_kv_heads) {
    ModelConfig c = llama_config();
    c.layers = 8, c.ffn = 12, c.vocab = 24, c.true_vocab = 21;
    c.kv_heads = few_kv_heads ? 2 : 4;
    c.qk_norm = few_kv_heads && !tied;  // without rotary positions the gradient by its bias is zero but for rounding
    c.tied = tied;
    if (tied) {  // and all else that the other has not
        c.position = PositionKind::learned;
        c.norm = NormKind::layer_norm;
        c.linear_bias = c.qkv_bias = true;
        c.hidden_dropout = 0.1;
        c.attention_dropout = few_kv_heads ? 0 : 0.1;
    }
    return c;
}

class ParityOfAll : public ::testing::TestWithParam<MeshCase> {};

TEST_P(ParityOfAll, every_option) {
    const MeshCase& m = GetParam();
    using Kind = RecomputeConfig::Kind;
    for (const bool tied : {false, true})
        for (const bool few : {false, true}) {
            const Training training{.model = model_of(tied, few), .micro_batches = 8, .documents = few};
            ParityRecord one;
            train_on_threads(training, {}, one);
            for (const bool sp : {false, true})
                for (const bool zero : {false, true})
                    for (const Kind recompute : {Kind::none, Kind::selective, Kind::uniform, Kind::block}) {
                        if (sp && m.tp == 1) continue;
                        Layout layout{.mesh = {.tp = m.tp, .cp = m.cp, .dp = m.dp, .pp = m.pp},
                                      .sequence_parallel = sp,
                                      .distributed_optimizer = zero,
                                      .overlap = recompute == Kind::selective || recompute == Kind::block,
                                      .gather_in_update = recompute == Kind::block,
                                      .chunks = m.chunks,
                                      .recompute = {recompute, 1}};
                        if (m.pp > 1 && zero) layout.deferral = recompute == Kind::uniform ? 3 : 0;
                        SCOPED_TRACE(layout.name() + (tied ? " tied" : "") + (few ? " few kv heads" : ""));
                        ParityRecord many;
                        train_on_threads(training, layout, many);
                        expect_same_training(training, many, one);
                        if (HasFailure()) return;
                    }
        }
}

INSTANTIATE_TEST_SUITE_P(Slow, ParityOfAll, ::testing::ValuesIn(all_meshes()), [](const auto& c) {
    const MeshCase& m = c.param;
    return cat("tp", m.tp, "_pp", m.pp, "x", m.chunks, "_cp", m.cp, "_dp", m.dp);
});

}  // namespace
}  // namespace tera::test
