#include "nn/ring_attention.h"

#include "ops/convert.h"

namespace tera {
namespace {

using Cargo = CpRegion::Cargo;

/// Two places, of which one is in use in a turn and the other in the next.
struct Pair {
    Tensor one, two;

    Pair(const Exec& exec, DType dtype, Shape shape) : one(exec.tensor(dtype, shape)), two(exec.tensor(dtype, shape)) {}
    const Tensor& in_turn(int number) const { return number % 2 == 0 ? one : two; }
};

}  // namespace

RingAttention::Turn RingAttention::turn(int number) const {
    const int from = (cp_.rank() - number + cp_.size()) % cp_.size();
    Turn t{own_};
    if (from == cp_.rank()) return t;
    const std::int64_t half = own_.Sq / 2;
    t.spec.causal = false;
    t.spec.whole.key = zigzag_piece(own_.Sk, from, cp_.size());
    if (from < cp_.rank()) {
        t.spec.Sk = half;
    } else {
        t.first_query = t.spec.Sq = t.spec.whole.query.offset = half;
        if (own_.doc_start) t.spec.doc_start = own_.doc_start + half * own_.B;
    }
    return t;
}

ops::AttentionOut RingAttention::forward(const Exec& e, const Exec& out, ConstTensor qkv) const {
    const DType acc = acc_dtype(qkv.dtype);
    const ops::AttentionOut all{out.tensor(qkv.dtype, {qkv.rows(), q_cols()}),
                                out.tensor(acc, {own_.B, own_.H, own_.Sq})};
    const ArenaScope scope(*e.arena);
    const ops::AttentionOut sum{acc == qkv.dtype ? all.o : e.tensor(acc, all.o.shape), all.lse};
    const Pair kv(e, qkv.dtype, {qkv.rows(), 2 * kv_cols()});
    ops::copy_columns(e, kv.one, qkv, q_cols());
    for (int i = 0; i < cp_.size(); ++i) {
        const Tensor& here = kv.in_turn(i);
        if (i > 0) cp_.arrived(e, Cargo::block);
        if (i + 1 < cp_.size()) cp_.pass_on(e, Cargo::block, here, kv.in_turn(i + 1));
        const ArenaScope turn_scope(*e.arena);
        const Turn t = turn(i);
        const ConstTensor q = qkv.slice(t.first_query * own_.B, t.spec.Sq * own_.B);
        const ops::AttentionOut part =
            ops::attention(e, t.spec, {q, 0}, {ConstTensor(here), 0}, {ConstTensor(here), kv_cols()});
        if (i > 0) {
            ops::merge_attention(e, sum, part, t.first_query);
        } else {
            ops::convert(e, sum.o, part.o);
            ops::copy(e, sum.lse, part.lse);
        }
    }
    if (acc != qkv.dtype) ops::convert(e, all.o, sum.o);
    return all;
}

void RingAttention::backward(const Exec& e, Tensor dqkv, ConstTensor d_o, ConstTensor qkv,
                             const ops::AttentionOut& saved) const {
    const ArenaScope scope(*e.arena);
    const DType dtype = qkv.dtype, acc = acc_dtype(dtype);
    const Tensor dq = e.tensor(acc, saved.o.shape);
    const Pair kv(e, dtype, {qkv.rows(), 2 * kv_cols()}), dkv(e, acc, kv.one.shape);
    const Tensor second_lse = e.tensor(acc, {own_.B, own_.H, own_.Sq / 2});  // of the second half of the queries
    ops::copy_columns(e, second_lse, saved.lse, own_.Sq / 2);
    ops::copy_columns(e, kv.one, qkv, q_cols());
    for (int i = 0; i < cp_.size(); ++i) {
        const Tensor &here = kv.in_turn(i), &gradients = dkv.in_turn(i);
        if (i > 0) cp_.arrived(e, Cargo::block);
        if (i + 1 < cp_.size()) cp_.pass_on(e, Cargo::block, here, kv.in_turn(i + 1));
        const ArenaScope turn_scope(*e.arena);
        const Turn t = turn(i);
        const std::int64_t first = t.first_query * own_.B, rows = t.spec.Sq * own_.B;
        const Tensor part_q = e.tensor(dtype, {rows, q_cols()}),
                     part_kv = e.tensor(dtype, {t.spec.Sk * own_.B, 2 * kv_cols()});
        ops::attention_backward(e, t.spec, {{part_q, 0}, {part_kv, 0}, {part_kv, kv_cols()}}, d_o.slice(first, rows),
                                {qkv.slice(first, rows), 0}, {ConstTensor(here), 0}, {ConstTensor(here), kv_cols()},
                                {saved.o.slice(first, rows), t.first_query > 0 ? second_lse : saved.lse});
        if (i > 0) {
            ops::add_to(e, dq.slice(first, rows), part_q);
            cp_.arrived(e, Cargo::gradients);
            ops::add_to(e, gradients.slice(0, part_kv.rows()), part_kv);
        } else {
            ops::convert(e, dq, part_q);
            ops::convert(e, gradients, part_kv);
        }
        cp_.pass_on(e, Cargo::gradients, gradients, dkv.in_turn(i + 1));
    }
    ops::put_columns(e, dqkv, 0, ops::as_dtype(e, dq, dtype));
    cp_.arrived(e, Cargo::gradients);
    ops::put_columns(e, dqkv, q_cols(), ops::as_dtype(e, dkv.in_turn(cp_.size()), dtype));
}

}  // namespace tera
