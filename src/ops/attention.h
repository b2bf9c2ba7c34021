// Scaled dot-product attention over qkv rows, computed block by block so that the scores never exist whole.
//
//   o_q = Σ_k p_qk v_k,  p_q = dropout(softmax_k(scale q·k))  over the keys that query q may see:
//   causal:      k <= q + (Sk - Sq)
//   doc_start:   whole.key.at(k) >= doc_start[q]    (documents packed into one sample do not see each other)
//
// Query head h reads key/value head h / (H/G). Tokens are rows t = s*B + b. Kept for backward: o and the row's
// log-sum-exp. A query that sees none of the keys has o = 0 and lse = -inf.
//
// The keys may be some of all that a query sees: what it gets from others is merged with merge_attention, and backward
// of each part, given the merged o and lse, writes its part of dq and all of dk and dv.
#pragma once

#include "core/exec.h"
#include "core/rng.h"
#include "ops/document_list.h"
#include "ops/sequence_piece.h"

namespace tera::ops {

/// Heads side by side inside wider rows.
template <class TensorType>
struct HeadRows {
    TensorType data;          ///< [rows, width], row s*B + b
    std::int64_t offset = 0;  ///< column of head 0
};

struct AttentionSpec {
    std::int64_t B, Sq, Sk, H, G, K;
    double scale;
    bool causal = true;
    const std::int32_t* doc_start = nullptr;  ///< [Sq,B], positions in the whole; null: 0
    DocumentList documents = {};              ///< the same as a list, where there is one and these are whole sequences
    double dropout = 0;
    DropoutSite site = {};
    const std::int64_t* sample = nullptr;  ///< [B], only with dropout
    /// What is dropped is a function of the place in the whole: its head, query, key, and the length of the sequence.
    struct Whole {
        std::int64_t head = 0;               ///< of the first here
        SequencePiece query = {}, key = {};  ///< where those here stand
        std::int64_t length = 0;             ///< 0: these keys and queries are all
    } whole = {};
};

struct AttentionOut {
    Tensor o;    ///< [Sq*B, H*K]
    Tensor lse;  ///< [B,H,Sq] accumulation dtype
};

AttentionOut attention(const Exec& exec, const AttentionSpec& spec, HeadRows<ConstTensor> q, HeadRows<ConstTensor> k,
                       HeadRows<ConstTensor> v);

/// Adds what queries [first, first + Sq) of `all` get from more keys: with the part's own o and lse
///   lse' = log(e^lse + e^lse_part),  o' = e^(lse - lse') o + e^(lse_part - lse') o_part
/// all.o is of the accumulation dtype.
void merge_attention(const Exec& exec, const AttentionOut& all, const AttentionOut& part, std::int64_t first);

/// Writes dq, dk, dv (all of their heads' columns) from d_o [Sq*B, H*K].
struct AttentionGrads {
    HeadRows<Tensor> dq, dk, dv;
};
void attention_backward(const Exec& exec, const AttentionSpec& spec, const AttentionGrads& grads, ConstTensor d_o,
                        HeadRows<ConstTensor> q, HeadRows<ConstTensor> k, HeadRows<ConstTensor> v,
                        const AttentionOut& out);

}  // namespace tera::ops
