// Attention: qkv projection, optional query/key norm, RoPE, scaled dot-product attention, output projection.
// The bias of the output projection is left to the residual connection that follows.
#pragma once

#include "nn/linear_params.h"
#include "nn/norm.h"
#include "nn/regions.h"
#include "nn/ring_attention.h"
#include "ops/attention.h"
#include "ops/residual.h"
#include "ops/rope.h"

namespace tera {

/// What every layer needs to know of the micro-batch.
struct BlockInput {
    std::int64_t S = 0, B = 0;
    const std::int32_t* positions = nullptr;  ///< [S,B]
    const std::int32_t* doc_start = nullptr;  ///< [S,B] or null
    ops::DocumentList documents = {};         ///< the same as a list, if there is one
    const std::int64_t* sample = nullptr;     ///< [B], with dropout
    const ops::RopeTable* rope = nullptr;     ///< null: no rotary positions
    std::uint64_t seed = 0;
    bool dropout = false;            ///< training
    ops::SequencePiece stream = {};  ///< where this rank's rows of the residual stream stand in the sequence
    std::int64_t length = 0;         ///< of the whole sequence; S of it are here
};

/// Keys and values of one layer, rows s*B + b.
struct LayerCache {
    Tensor k, v;  ///< [max_length*B, G*K]
};

struct KvCache {
    std::int64_t B = 0, max_length = 0, length = 0;
    std::vector<LayerCache> layers;
};

/// Dropout sites within a layer (core/rng.h).
enum class DropoutPlace : std::uint32_t { embedding, attention, after_attention, after_mlp };

class Attention {
  public:
    /// layer counts from 0 over the whole model.
    Attention(const ModelConfig& config, std::int64_t layer, bool recompute_core, const Regions& ranks);

    /// Scaled dot-product attention of this rank's queries.
    struct Core {
        Tensor o;                              ///< [T,H*K]
        std::vector<ops::AttentionOut> parts;  ///< of runs of the queries one after the other, their o within o
    };

    struct Saved {
        ConstTensor x;         ///< normed input, this rank's rows
        Tensor raw;            ///< qkv before query/key norm, if there is one
        ops::NormStats stats;  ///< of the query/key norm
        Tensor qkv;            ///< as attention reads it
        Core core;             ///< absent when recomputed
    };

    template <class F>
    void visit(F&& f) {
        qkv_.visit(f);
        if (q_norm_) q_norm_->visit(f), k_norm_->visit(f);
        proj_.visit(f);
    }

    /// to.x + dropout(attention(x)), in ctx.keep.
    Tensor forward(Ctx& ctx, const BlockInput& in, ConstTensor x, const ops::Residual& to, Saved& saved) const;
    /// Gradient by x, in ctx.temp; dy is that of the branch, behind the dropout.
    Tensor backward(Ctx& ctx, const BlockInput& in, ConstTensor dy, const Saved& saved);
    /// stream + attention(x), for the S positions that follow the cache's; appends to the cache.
    Tensor infer(Ctx& ctx, const BlockInput& in, ConstTensor x, ConstTensor stream, LayerCache& cache,
                 std::int64_t cached) const;

    /// Of the output projection; whoever has dy at hand sums its columns.
    Param* bias_param() { return proj_.bias ? &*proj_.bias : nullptr; }

  private:
    Tensor project_qkv(const Exec& exec, const BlockInput& in, ConstTensor x, Saved& saved) const;
    /// Of the queries of one run with the keys [0, keys) of the sequence.
    ops::AttentionSpec core_spec(const BlockInput& in, const SequenceRun& run, std::int64_t keys) const;
    /// Of this rank's queries and keys.
    RingAttention ring(const BlockInput& in) const;
    /// out: where the result lives.
    Core core(Ctx& ctx, const Exec& out, const BlockInput& in, ConstTensor qkv) const;
    void core_backward(const Exec& exec, const BlockInput& in, Tensor dqkv, ConstTensor d_o, ConstTensor qkv,
                       const Core& core) const;
    std::int64_t q_cols() const { return heads_ * config_.head_dim; }
    std::int64_t kv_cols() const { return kv_heads_ * config_.head_dim; }
    /// Keys and values [.., 2*kv_cols] of the whole sequence.
    ConstTensor all_keys_and_values(const Exec& exec, ConstTensor qkv) const;
    ops::HeadNormWeights head_norm_weights() const;

    ModelConfig config_;
    TpRegion tp_;
    CpRegion cp_;
    std::int64_t heads_, kv_heads_;  ///< of this rank
    std::int64_t layer_;
    bool recompute_core_;
    LinearParams qkv_;
    std::optional<NormParams> q_norm_, k_norm_;
    LinearParams proj_;
};

}  // namespace tera
