// Every layout trains as one rank does: gradients, three optimizer steps, norms and losses, in f64.
#include "support/parity.h"

namespace tera::test {
namespace {

/// Learned positions, LayerNorm, biases, tied.
ModelConfig gpt() {
    ModelConfig c = gpt_config();
    c.hidden = 12, c.heads = c.kv_heads = 4, c.head_dim = 6, c.ffn = 20;
    c.vocab = 24, c.true_vocab = 21;
    return c;
}

/// RoPE, RMSNorm, SwiGLU, two key/value heads, untied, query/key norm.
ModelConfig llama() {
    ModelConfig c = llama_config();
    c.ffn = 20;
    c.vocab = 24, c.true_vocab = 23;
    c.qk_norm = true;
    return c;
}

ModelConfig with_dropout(ModelConfig c) {
    c.hidden_dropout = 0.2, c.attention_dropout = 0.1;
    return c;
}

TEST(Parity, tensor_parallel) {
    for (const bool sp : {false, true}) {
        SCOPED_TRACE(sp);
        expect_parity({.model = gpt()}, {.mesh = {.tp = 2}, .sequence_parallel = sp});
        expect_parity({.model = llama()}, {.mesh = {.tp = 2}, .sequence_parallel = sp});
    }
}

TEST(Parity, fewer_key_value_heads_than_ranks) {
    ModelConfig biased = llama();
    biased.qkv_bias = true;
    for (const bool sp : {false, true}) {
        SCOPED_TRACE(sp);
        expect_parity({.model = biased}, {.mesh = {.tp = 4}, .sequence_parallel = sp});
    }
}

TEST(Parity, dropout_does_not_depend_on_the_layout) {
    for (const bool sp : {false, true})
        expect_parity({.model = with_dropout(gpt())}, {.mesh = {.tp = 2}, .sequence_parallel = sp});
}

TEST(Parity, recompute_in_a_tensor_parallel_region) {
    for (const auto kind :
         {RecomputeConfig::Kind::selective, RecomputeConfig::Kind::uniform, RecomputeConfig::Kind::block})
        expect_parity({.model = with_dropout(gpt())},
                      {.mesh = {.tp = 2}, .sequence_parallel = true, .recompute = {kind, 1}});
}

TEST(Parity, kept_inputs_shared_over_tensor_ranks) {
    using Kind = RecomputeConfig::Kind;
    ModelConfig four = with_dropout(gpt());
    four.layers = 4;
    for (const RecomputeConfig recompute :
         {RecomputeConfig{Kind::uniform, 1, true}, RecomputeConfig{Kind::uniform, 3, true},
          RecomputeConfig{Kind::block, 2, true}}) {
        expect_parity({.model = four}, {.mesh = {.tp = 2}, .recompute = recompute});
        expect_parity({.model = four, .steps = 2},
                      {.mesh = {.tp = 2, .pp = 2}, .overlap = true, .chunks = 2, .recompute = recompute});
    }
    expect_parity({.model = four},
                  {.mesh = {.tp = 2, .pp = 2}, .first_stage_layers = 0, .recompute = {Kind::uniform, 2, true}});
}

TEST(Parity, data_parallel) {
    for (const bool zero : {false, true}) {
        SCOPED_TRACE(zero);
        expect_parity({.model = gpt()}, {.mesh = {.dp = 2}, .distributed_optimizer = zero});
        expect_parity({.model = llama(), .per_token_loss = true}, {.mesh = {.dp = 4}, .distributed_optimizer = zero});
    }
}

TEST(Parity, tensor_and_data_parallel) {
    for (const bool zero : {false, true})
        expect_parity({.model = llama(), .documents = true},
                      {.mesh = {.tp = 4, .dp = 2}, .sequence_parallel = true, .distributed_optimizer = zero});
}

ModelConfig deeper(ModelConfig c, std::int64_t layers) {
    c.layers = layers;
    return c;
}

TEST(Parity, pipeline) {
    for (const bool tied : {false, true}) {
        SCOPED_TRACE(tied);
        ModelConfig model = deeper(llama(), 4);
        model.tied = tied;
        expect_parity({.model = model}, {.mesh = {.pp = 2}});
        expect_parity({.model = model}, {.mesh = {.pp = 4}});
    }
}

TEST(Parity, interleaved_pipeline) {
    expect_parity({.model = deeper(gpt(), 4)}, {.mesh = {.pp = 2}, .chunks = 2});
    expect_parity({.model = deeper(llama(), 8), .micro_batches = 8}, {.mesh = {.pp = 4}, .chunks = 2});
}

TEST(Parity, uneven_pipeline) {
    expect_parity({.model = deeper(gpt(), 5), .documents = true}, {.mesh = {.pp = 3}, .first_stage_layers = 1});
    expect_parity({.model = deeper(gpt(), 5)}, {.mesh = {.pp = 3}, .first_stage_layers = 2, .last_stage_layers = 1});
    expect_parity({.model = deeper(llama(), 4)}, {.mesh = {.pp = 3}, .count_embedding = true, .count_loss = true});
    expect_parity({.model = deeper(llama(), 6), .micro_batches = 8},
                  {.mesh = {.pp = 2}, .chunks = 2, .count_embedding = true, .count_loss = true});
}

TEST(Parity, stages_with_nothing_but_embedding_or_loss) {
    for (const bool tied : {false, true}) {
        SCOPED_TRACE(tied);
        ModelConfig model = deeper(gpt(), 2);
        model.tied = tied;
        expect_parity({.model = model}, {.mesh = {.pp = 4}, .count_embedding = true, .count_loss = true});
        expect_parity({.model = model}, {.mesh = {.tp = 2, .dp = 2, .pp = 2},
                                         .sequence_parallel = true,
                                         .distributed_optimizer = true,
                                         .overlap = true,
                                         .last_stage_layers = 0,
                                         .deferral = 0});
    }
    expect_parity({.model = deeper(llama(), 2)}, {.mesh = {.pp = 3}, .first_stage_layers = 0});
    expect_parity({.model = deeper(with_dropout(gpt()), 6), .micro_batches = 8},
                  {.mesh = {.tp = 2, .pp = 2},
                   .chunks = 4,
                   .count_embedding = true,
                   .count_loss = true,
                   .recompute = {RecomputeConfig::Kind::uniform, 1}});
}

TEST(Parity, pipeline_with_recompute_and_dropout) {
    expect_parity({.model = deeper(with_dropout(gpt()), 4)},
                  {.mesh = {.pp = 2}, .recompute = {RecomputeConfig::Kind::uniform, 2}});
}

TEST(Parity, context_parallel) {
    expect_parity({.model = with_dropout(gpt())}, {.mesh = {.cp = 2}});
    expect_parity({.model = llama(), .S = 12, .documents = true}, {.mesh = {.cp = 3}});
    expect_parity({.model = llama(), .per_token_loss = true}, {.mesh = {.cp = 4}});
    expect_parity({.model = with_dropout(gpt()), .documents = true},
                  {.mesh = {.cp = 2}, .recompute = {RecomputeConfig::Kind::selective, 1}});
}

TEST(Parity, keys_around_a_ring_or_gathered) {
    for (const CpComm kind : {CpComm::ring, CpComm::all_gather})
        for (const bool documents : {false, true}) {
            SCOPED_TRACE(kind == CpComm::ring ? "ring" : "gathered");
            expect_parity({.model = with_dropout(gpt()), .S = 16, .steps = 2, .documents = documents},
                          {.mesh = {.cp = 4}, .cp_comm = kind});
            expect_parity({.model = llama(), .S = 12, .steps = 2, .documents = documents},
                          {.mesh = {.tp = 2, .cp = 3}, .cp_comm = kind, .sequence_parallel = true});
        }
}

TEST(Parity, context_with_all_others) {
    for (const CpComm kind : {CpComm::ring, CpComm::all_gather})
        expect_parity({.model = deeper(with_dropout(gpt()), 4), .documents = true},
                      {.mesh = {.tp = 2, .cp = 2, .dp = 2, .pp = 2},
                       .cp_comm = kind,
                       .sequence_parallel = true,
                       .distributed_optimizer = true,
                       .chunks = 2});
}

TEST(Parity, overlapped_reductions) {
    for (const bool zero : {false, true}) {
        SCOPED_TRACE(zero);
        expect_parity({.model = gpt()}, {.mesh = {.dp = 2}, .distributed_optimizer = zero, .overlap = true});
        expect_parity({.model = deeper(gpt(), 4), .documents = true}, {.mesh = {.tp = 2, .cp = 2, .dp = 2, .pp = 2},
                                                                       .sequence_parallel = true,
                                                                       .distributed_optimizer = zero,
                                                                       .overlap = true,
                                                                       .chunks = 2});
    }
}

TEST(Parity, a_buffer_is_gathered_while_the_next_is_updated) {
    expect_parity({.model = gpt()},
                  {.mesh = {.dp = 2}, .distributed_optimizer = true, .overlap = true, .gather_in_update = true});
    expect_parity({.model = llama()}, {.mesh = {.tp = 2, .cp = 2, .dp = 2},
                                       .sequence_parallel = true,
                                       .distributed_optimizer = true,
                                       .overlap = true,
                                       .gather_in_update = true});
    for (const int chunks : {1, 2})  // tied over the stages: a buffer apart
        expect_parity({.model = deeper(gpt(), 4)}, {.mesh = {.dp = 2, .pp = 2},
                                                    .distributed_optimizer = true,
                                                    .overlap = true,
                                                    .gather_in_update = true,
                                                    .chunks = chunks});
}

TEST(Parity, only_gradients_overlap_or_nothing_of_tensor_parallel_layers) {
    expect_parity({.model = gpt()}, {.mesh = {.tp = 2, .dp = 2},
                                     .sequence_parallel = true,
                                     .distributed_optimizer = true,
                                     .overlap = true,
                                     .overlap_gather = false,
                                     .tp_overlap = false});
}

TEST(Parity, the_output_matrix_waits_for_the_end_of_the_step) {
    for (const std::int64_t limit : {0, 2})
        for (const bool tied : {false, true}) {
            SCOPED_TRACE(limit);
            ModelConfig model = deeper(gpt(), 4);
            model.tied = tied;
            expect_parity({.model = model}, {.mesh = {.pp = 2}, .deferral = limit});
            expect_parity({.model = model, .micro_batches = 8}, {.mesh = {.tp = 2, .dp = 2, .pp = 2},
                                                                 .sequence_parallel = true,
                                                                 .distributed_optimizer = true,
                                                                 .overlap = true,
                                                                 .chunks = 2,
                                                                 .deferral = limit});
        }
}

TEST(Parity, tensor_data_and_pipeline) {
    for (const bool zero : {false, true})
        expect_parity({.model = deeper(gpt(), 4)}, {.mesh = {.tp = 2, .dp = 2, .pp = 2},
                                                    .sequence_parallel = true,
                                                    .distributed_optimizer = zero,
                                                    .chunks = 2});
    expect_parity({.model = deeper(llama(), 4)}, {.mesh = {.tp = 2, .dp = 2, .pp = 2, .pp_before_dp = true}});
}

}  // namespace
}  // namespace tera::test
