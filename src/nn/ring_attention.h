// Attention of this rank's queries to the keys of all context ranks, which come by one block at a time.
//
//   forward    The ranks are a ring of C. In every turn a rank sends the block of keys and values that is here to the
//              next rank, attends to it meanwhile, and merges what its queries got (ops::merge_attention).
//   backward   The blocks go around again. Given the o and lse of all keys, each turn's backward gives exact parts:
//   those
//              of dq stay and are added up, those of dk and dv follow their block around the ring and come home with a
//              last step.
//
// Rank r holds chunks r and 2C-1-r of the sequence (nn/cp_region.h). Of the block of rank j its queries see
//   j = r   what the causal mask over the two chunks, side by side, lets them
//   j < r   all queries the first chunk, none the second
//   j > r   the second half of the queries both chunks, the first half neither
// so that each turn is one call without wasted pairs, and as much work on every rank.
//
// Sums are in the accumulation dtype and rounded once, at the end; two blocks are held at a time.
#pragma once

#include "nn/cp_region.h"
#include "ops/attention.h"

namespace tera {

class RingAttention {
  public:
    /// own: of this rank's queries with this rank's keys, under the causal mask; whole.query and whole.key are
    /// zigzag_piece's.
    RingAttention(const CpRegion& cp, const ops::AttentionSpec& own) : cp_(cp), own_(own) {}

    /// qkv [S*B, (H+2G)*K]; the result lives in `out`.
    ops::AttentionOut forward(const Exec& exec, const Exec& out, ConstTensor qkv) const;
    /// Writes dqkv.
    void backward(const Exec& exec, Tensor dqkv, ConstTensor d_o, ConstTensor qkv,
                  const ops::AttentionOut& saved) const;

  private:
    /// What this rank does with the block of one rank.
    struct Turn {
        ops::AttentionSpec spec;
        std::int64_t first_query = 0;  ///< of those that see something of it
    };
    Turn turn(int number) const;

    std::int64_t q_cols() const { return own_.H * own_.K; }
    std::int64_t kv_cols() const { return own_.G * own_.K; }

    const CpRegion& cp_;
    ops::AttentionSpec own_;
};

}  // namespace tera
