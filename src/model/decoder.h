// Decoder: word (and position) embedding, L blocks, final norm, output matrix. Covers GPT-2/3, Llama 2/3 and every
// mixture of their parts that ModelConfig can say.
//
//   x0 = word[token] (+ position[pos]), dropout
//   x  = x + dropout(attention(norm(x)));  x = x + dropout(mlp(norm(x)))      L times
//   loss_t = cross_entropy(norm(x)_t . Eᵀ, label_t)
//
// Training: forward() then backward() per micro-batch, gradients accumulate in Param::grad. The output matrix and its
// loss are done piece by piece in forward, gradient included, so that logits never exist whole (nn/lm_head.h).
//
// A Decoder may be a slice of the layers, one place of a pipeline: then forward takes the stream from the place before
// and hands its own on, and backward takes and hands on the gradient.
#pragma once

#include <optional>
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
    std::int64_t length = 0;                  ///< of the whole sequence, where these are S positions of it; 0: S
    ops::SequencePiece place = {};            ///< which of them
    ops::DocumentList documents = {};         ///< what doc_start says as a list, if there is one
};

struct LossSum {
    double loss = 0;    ///< Σ mask_t loss_t
    double tokens = 0;  ///< Σ mask_t
};
/// Zeroed sums for forward and evaluate to add to.
Tensor loss_sums(const Exec& exec);
/// Waits for them.
LossSum read_loss(const Exec& exec, ConstTensor sums);

/// Layers first .. first + count - 1 of a model, the first place with the embedding, the last with final norm and
/// output matrix. Those two may have no layers.
struct ModelSlice {
    std::int64_t first = 0, count = 0;
    bool embedding = true, head = true;
};

class Decoder {
  public:
    /// The whole model on one rank.
    Decoder(const ModelConfig& config, const RecomputeConfig& recompute, std::uint64_t seed);
    /// ranks: those that share out every layer.
    Decoder(const ModelConfig& config, const RecomputeConfig& recompute, std::uint64_t seed, const ModelSlice& slice,
            const Regions& ranks);

    const ModelConfig& config() const { return config_; }
    const ModelSlice& slice() const { return slice_; }

    template <class F>
    void visit(F&& f) {
        if (embedding_) embedding_->visit(f);
        for (Block& b : blocks_) b.visit(f);
        if (final_norm_) final_norm_->visit(f);
        if (head_) head_->visit(f);
    }

    struct Saved {
        std::vector<Block::Saved> blocks;  ///< of layers that keep their activations
        std::vector<Tensor> inputs;        ///< at the first layer of every checkpointed chunk: its input, or a part
        Norm::Saved final_norm;
        LmHead::Saved head;
    };

    /// What a forward pass is given beside the batch.
    struct Input {
        Tensor x = {};                         ///< the stream from the place before; to train, in input_memory
        double grad_scale = 1;                 ///< derivative of the objective by Σ mask_t loss_t
        Tensor sums = {};                      ///< [2] f64, to which the last place adds Σ mask_t loss_t and Σ mask_t
        const LmHead::Later* later = nullptr;  ///< puts off the gradient of the output matrix until finish_head
    };
    /// Where the stream from the place before is to be put, right before forward.
    Exec input_memory(const Ctx& ctx) const;
    /// Forward with dropout on, and the loss at the last place. Returns the stream for the place after, in ctx.keep. On
    /// a GPU everything is only enqueued.
    Tensor forward(Ctx& ctx, const MicroBatch& batch, const Input& input, Saved& saved,
                   ParamObserver* observer = nullptr);
    /// Of the whole model: waits for the loss.
    LossSum forward(Ctx& ctx, const MicroBatch& batch, double grad_scale, Saved& saved);
    /// Adds the gradients of the micro-batch that filled `saved` to every parameter. dx (stream_shape) holds the
    /// gradient by what forward returned, except at the last place, and receives that by its input, except at the
    /// first.
    void backward(Ctx& ctx, const MicroBatch& batch, Tensor dx, const Saved& saved, ParamObserver* observer = nullptr);
    /// Of the whole model.
    void backward(Ctx& ctx, const MicroBatch& batch, const Saved& saved);
    /// The gradient of the output matrix that was put off, at the last place.
    void finish_head(const Exec& exec, DeferredGrad& grad, ParamObserver* observer);
    /// forward with dropout off and nothing kept.
    Tensor evaluate(Ctx& ctx, const MicroBatch& batch, const Input& input) const;
    /// Loss of the whole model. token_loss: [T] losses before the mask, if wanted.
    void evaluate(Ctx& ctx, const MicroBatch& batch, Tensor sums, Tensor* token_loss = nullptr) const;
    LossSum evaluate(Ctx& ctx, const MicroBatch& batch, Tensor* token_loss = nullptr) const;
    /// Logits [T,V] in the accumulation dtype, dropout off; allocated in ctx.keep.
    Tensor logits(Ctx& ctx, const MicroBatch& batch) const;

    /// Inference with a cache of keys and values: appends batch (S new positions for each of B sequences, positions
    /// cache.length ...) and returns the logits [B,V] of the last position.
    KvCache make_cache(Arena& arena, std::int64_t B, std::int64_t max_length) const;
    Tensor next_logits(Ctx& ctx, const MicroBatch& batch, KvCache& cache) const;

    /// Of the stream that places hand on: this rank's rows.
    Shape stream_shape(const MicroBatch& batch) const;
    DType dtype() const;

    /// Bytes of tables that were built on the way (RoPE), beside the arenas.
    std::size_t table_bytes() const { return rope_.bytes(); }

  private:
    /// before: positions that are cached.
    BlockInput block_input(const Ctx& ctx, const MicroBatch& batch, bool dropout, std::int64_t before = 0) const;
    Tensor run_without_grad(Ctx& ctx, const MicroBatch& batch, Tensor x) const;
    void check_whole() const;
    /// End of the checkpointed chunk that begins at this layer of the slice; the layer itself if it keeps its
    /// activations.
    std::int64_t chunk_end(std::int64_t layer) const;
    /// A chunk begins here of whose input each tensor rank keeps a part.
    bool shares_input(std::int64_t layer) const;
    /// The checkpointed chunk that begins here: keeps only its input.
    Tensor forward_chunk(Ctx& ctx, const BlockInput& in, Tensor x, std::int64_t begin, Saved& saved,
                         ParamObserver* observer);
    const Param& head_weight() const { return head_->own_weight ? *head_->own_weight : embedding_->word; }
    Param& head_weight() { return head_->own_weight ? *head_->own_weight : embedding_->word; }

    ModelConfig config_;
    ModelSlice slice_;
    TpRegion tp_;
    RecomputeConfig recompute_;
    std::uint64_t seed_;
    std::optional<Embedding> embedding_;
    std::vector<Block> blocks_;
    std::optional<Norm> final_norm_;
    std::optional<LmHead> head_;
    mutable RopeCache rope_;  // a cache of constants
};

}  // namespace tera
