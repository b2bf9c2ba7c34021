// Small models of every kind, and random micro-batches for them.
#pragma once

#include "model/decoder.h"
#include "support/world.h"

namespace tera::test {

inline ModelConfig gpt_config() {
    ModelConfig c;
    c.layers = 2, c.hidden = 12, c.heads = 3, c.kv_heads = 3, c.head_dim = 4, c.ffn = 20;
    c.vocab = 17, c.true_vocab = 15, c.max_positions = 16;
    c.init_std = 0.3;
    return c;
}

inline ModelConfig llama_config() {
    ModelConfig c = gpt_config();
    c.heads = 4, c.kv_heads = 2, c.head_dim = 6, c.hidden = 10;
    c.position = PositionKind::rope;
    c.rope.scaling = true, c.rope.original_max_positions = 8, c.rope.base = 100;
    c.norm = NormKind::rms_norm;
    c.activation = Activation::swiglu;
    c.linear_bias = c.qkv_bias = false;
    c.tied = false;
    return c;
}

/// A decoder with memory and random parameters (norms and biases too, so that every gradient is exercised).
struct TestModel {
    Decoder model;
    std::vector<Param*> params;
    TestModel(World& w, const ModelConfig& config, const RecomputeConfig& recompute = {}, DType dtype = DType::f64)
        : model(config, recompute, 7), params(params_of(model)) {
        allocate_params(params, w.store, dtype, acc_dtype(dtype));
        init_params(params, w.ctx.temp, 1234);
        for (Param* p : params)
            if (p->init.kind == Init::Kind::constant) {
                Tensor noise = w.random(dtype, p->value.shape, 0.5);
                dispatch_float(dtype, [&](auto zero) {
                    using T = decltype(zero);
                    for (std::int64_t i = 0; i < noise.numel(); ++i) {
                        auto sum =
                            static_cast<acc_t<T>>(p->value.ptr<T>()[i]) + static_cast<acc_t<T>>(noise.ptr<T>()[i]);
                        p->value.ptr<T>()[i] = static_cast<T>(sum);
                    }
                });
            }
    }
};

struct TestBatch {
    std::int64_t S, B;
    std::vector<std::int32_t> tokens, labels, positions, doc_start;
    std::vector<float> mask;
    std::vector<std::int64_t> sample;

    TestBatch(World& w, std::int64_t s, std::int64_t b, std::int32_t vocab) : S(s), B(b) {
        tokens = w.random_ints(S * B, vocab);
        labels = w.random_ints(S * B, vocab);
        for (std::int64_t t = 0; t < S * B; ++t) {
            positions.push_back(static_cast<std::int32_t>(t / B));
            mask.push_back(t % 5 == 3 ? 0.0f : 1.0f);
        }
        for (std::int64_t i = 0; i < B; ++i) sample.push_back(100 + i);
    }
    /// Cuts every sequence into two documents at `at`, positions starting again.
    void cut_documents(std::int32_t at) {
        doc_start.assign(tokens.size(), 0);
        for (std::size_t t = 0; t < tokens.size(); ++t)
            if (positions[t] >= at) doc_start[t] = at, positions[t] -= at;
    }
    MicroBatch view() const {
        return {S,
                B,
                tokens.data(),
                labels.data(),
                mask.data(),
                positions.data(),
                doc_start.empty() ? nullptr : doc_start.data(),
                sample.data()};
    }
};

/// One forward and backward; gradients are zeroed first.
inline LossSum run_step(World& w, TestModel& m, const TestBatch& batch, double grad_scale = 1) {
    w.reset();
    zero_grads(m.params, w.ctx.temp);
    Decoder::Saved saved;
    LossSum loss = m.model.forward(w.ctx, batch.view(), grad_scale, saved);
    m.model.backward(w.ctx, batch.view(), saved);
    return loss;
}

}  // namespace tera::test
