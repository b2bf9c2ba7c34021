// Decoder: word (and position) embedding, L blocks, final norm, output matrix. Covers GPT-2/3, Llama 2/3 and every
// mixture of their parts that ModelConfig can say.
//
//   x0 = word[token] (+ position[pos]), dropout
//   x  = x + dropout(attention(norm(x)));  x = x + dropout(mlp(norm(x)))      L times
//   loss_t = cross_entropy(norm(x)_t . Eᵀ, label_t)
//
// Training: forward() then backward() per micro-batch, gradients accumulate in Param::grad. The output matrix and its
// loss are done piece by piece in forward, gradient included, so that logits never exist whole (nn/lm_head.h).
#pragma once

#include <vector>

#include "nn/block.h"
#include "nn/embedding.h"
#include "nn/lm_head.h"
#include "nn/model_config.h"
#include "nn/norm.h"
#include "nn/rope_table.h"

namespace tera {

/// One micro-batch, all arrays [S,B] with row t = s*B + b, borrowed from the caller.
struct MicroBatch {
    std::int64_t S = 0, B = 0;
    const std::int32_t* tokens = nullptr;
    const std::int32_t* labels = nullptr;  ///< may be null for inference
    const float* loss_mask = nullptr;      ///< may be null for inference
    const std::int32_t* positions = nullptr;
    const std::int32_t* doc_start = nullptr;  ///< first position of the token's own document; null: one document
    const std::int64_t* sample = nullptr;     ///< [B] global sample numbers, for dropout; may be null without dropout
};

struct LossSum {
    double loss = 0;    ///< Σ mask_t loss_t
    double tokens = 0;  ///< Σ mask_t
};
/// Zeroed sums for forward and evaluate to add to.
Tensor loss_sums(const Exec& exec);
/// Waits for them.
LossSum read_loss(const Exec& exec, ConstTensor sums);

class Decoder {
  public:
    Decoder(const ModelConfig& config, const RecomputeConfig& recompute, std::uint64_t seed);

    const ModelConfig& config() const { return config_; }

    template <class F>
    void visit(F&& f) {
        embedding_.visit(f);
        for (Block& b : blocks_) b.visit(f);
        final_norm_.visit(f);
        head_.visit(f);
    }

    struct Saved {
        std::vector<Block::Saved> blocks;  ///< of layers that keep their activations
        std::vector<Tensor> inputs;        ///< at the first layer of every checkpointed chunk: its input
        Norm::Saved final_norm;
        LmHead::Saved head;
    };

    /// Forward and loss with dropout on. grad_scale: derivative of the objective by Σ mask_t loss_t. Adds Σ mask_t
    /// loss_t and Σ mask_t to sums [2] f64; on a GPU everything is only enqueued.
    void forward(Ctx& ctx, const MicroBatch& batch, double grad_scale, Saved& saved, Tensor sums);
    /// The same, and waits for the loss.
    LossSum forward(Ctx& ctx, const MicroBatch& batch, double grad_scale, Saved& saved);
    /// Adds the gradients of the micro-batch that filled `saved` to every parameter.
    void backward(Ctx& ctx, const MicroBatch& batch, const Saved& saved);
    /// Loss only: dropout off, nothing kept. token_loss: [T] losses before the mask, if wanted.
    void evaluate(Ctx& ctx, const MicroBatch& batch, Tensor sums, Tensor* token_loss = nullptr) const;
    LossSum evaluate(Ctx& ctx, const MicroBatch& batch, Tensor* token_loss = nullptr) const;
    /// Logits [T,V] in the accumulation dtype, dropout off; allocated in ctx.keep.
    Tensor logits(Ctx& ctx, const MicroBatch& batch) const;

    /// Inference with a cache of keys and values: appends batch (S new positions for each of B sequences, positions
    /// cache.length ...) and returns the logits [B,V] of the last position.
    KvCache make_cache(Arena& arena, std::int64_t B, std::int64_t max_length) const;
    Tensor next_logits(Ctx& ctx, const MicroBatch& batch, KvCache& cache) const;

    /// Bytes of tables that were built on the way (RoPE), beside the arenas.
    std::size_t table_bytes() const { return rope_.bytes(); }

  private:
    BlockInput block_input(const Ctx& ctx, const MicroBatch& batch, bool dropout, std::int64_t positions) const;
    Tensor run_without_grad(Ctx& ctx, const MicroBatch& batch) const;
    /// End of the checkpointed chunk that begins at this layer; the layer itself if it keeps its activations.
    std::int64_t chunk_end(std::int64_t layer) const;
    const Param& head_weight() const { return head_.own_weight ? *head_.own_weight : embedding_.word; }
    Param& head_weight() { return head_.own_weight ? *head_.own_weight : embedding_.word; }

    ModelConfig config_;
    RecomputeConfig recompute_;
    std::uint64_t seed_;
    Embedding embedding_;
    std::vector<Block> blocks_;
    Norm final_norm_;
    LmHead head_;
    mutable RopeCache rope_;  // a cache of constants
};

}  // namespace tera
