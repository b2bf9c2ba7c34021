#include "model/decoder.h"

#include "core/transfer.h"
#include "ops/convert.h"
#include "ops/masked_sum.h"

namespace tera {
namespace {

Tensor copy_to(const Exec& exec, ConstTensor x) {
    Tensor out = exec.like(x);
    ops::copy(exec, out, x);
    return out;
}

}  // namespace

Tensor loss_sums(const Exec& exec) {
    Tensor sums = exec.tensor(DType::f64, {2});
    ops::fill_zero(exec, sums);
    return sums;
}

LossSum read_loss(const Exec& exec, ConstTensor sums) {
    double host[2] = {};
    copy_to_host(exec, host, sums);
    return {host[0], host[1]};
}

Decoder::Decoder(const ModelConfig& config, const RecomputeConfig& recompute, std::uint64_t seed)
    : config_(config),
      recompute_(recompute),
      seed_(seed),
      embedding_(config),
      final_norm_(config, "final_norm"),
      head_(config),
      rope_(config.rope, config.head_dim) {
    TERA_CHECK(config.layers > 0 && config.hidden > 0 && config.heads > 0 && config.kv_heads > 0 && config.vocab > 0 &&
                   config.heads % config.kv_heads == 0 && recompute.layers > 0,
               "model sizes");
    bool selective = recompute.kind == RecomputeConfig::Kind::selective;
    for (std::int64_t l = 0; l < config.layers; ++l) blocks_.emplace_back(config, l, selective);
}

BlockInput Decoder::block_input(const Ctx& ctx, const MicroBatch& batch, bool dropout, std::int64_t positions) const {
    TERA_CHECK(positions <= config_.max_positions, "sequence of ", positions, ", model has ", config_.max_positions);
    BlockInput in{.S = batch.S,
                  .B = batch.B,
                  .positions = batch.positions,
                  .doc_start = batch.doc_start,
                  .sample = batch.sample,
                  .seed = seed_,
                  .dropout = dropout};
    if (config_.position == PositionKind::rope)
        in.rope = &rope_.table(ctx.temp, acc_dtype(embedding_.word.value.dtype), positions);
    return in;
}

std::int64_t Decoder::chunk_end(std::int64_t layer) const {
    switch (recompute_.kind) {
        case RecomputeConfig::Kind::uniform:
            return std::min(config_.layers, layer + recompute_.layers);
        case RecomputeConfig::Kind::block:
            return layer < recompute_.layers ? layer + 1 : layer;
        default:
            return layer;
    }
}

LossSum Decoder::forward(Ctx& ctx, const MicroBatch& batch, double grad_scale, Saved& saved) {
    Tensor sums = loss_sums(ctx.keep);
    forward(ctx, batch, grad_scale, saved, sums);
    return read_loss(ctx.keep, sums);
}

void Decoder::forward(Ctx& ctx, const MicroBatch& batch, double grad_scale, Saved& saved, Tensor sums) {
    BlockInput in = block_input(ctx, batch, true, batch.S);
    saved.blocks.assign(static_cast<std::size_t>(config_.layers), {});
    saved.inputs.assign(static_cast<std::size_t>(config_.layers), {});
    Tensor x = embedding_.forward(ctx.keep, in, batch.tokens);
    for (std::int64_t l = 0; l < config_.layers;) {
        std::int64_t end = chunk_end(l);
        if (end == l) {
            x = blocks_[static_cast<std::size_t>(l)].forward(ctx, in, x, saved.blocks[static_cast<std::size_t>(l)]);
            ++l;
            continue;
        }
        saved.inputs[static_cast<std::size_t>(l)] = x;
        ctx.redo.arena->reset();
        Ctx inner{ctx.redo, ctx.temp, ctx.redo};
        Block::Saved unused;
        for (; l < end; ++l) x = blocks_[static_cast<std::size_t>(l)].forward(inner, in, x, unused);
        x = copy_to(ctx.keep, x);
    }
    Tensor normed = final_norm_.forward(ctx.keep, x, saved.final_norm);
    Tensor loss = head_.forward(ctx, normed, {batch.labels, batch.loss_mask, grad_scale}, head_weight(), saved.head);
    ops::add_masked_sum(ctx.temp, sums, loss, batch.loss_mask);
}

void Decoder::backward(Ctx& ctx, const MicroBatch& batch, const Saved& saved) {
    BlockInput in = block_input(ctx, batch, true, batch.S);
    ArenaScope scope(*ctx.temp.arena);
    Tensor dx = ctx.temp.like(saved.head.dx);
    ops::fill_zero(ctx.temp, dx);
    final_norm_.backward(ctx.temp, dx, saved.head.dx, saved.final_norm);
    for (std::int64_t l = config_.layers; l > 0;) {
        std::int64_t begin = l - 1;
        while (begin > 0 && !saved.inputs[static_cast<std::size_t>(begin)] && chunk_end(begin) != begin) --begin;
        if (!saved.inputs[static_cast<std::size_t>(begin)]) {
            blocks_[static_cast<std::size_t>(begin)].backward(ctx, in, dx,
                                                              saved.blocks[static_cast<std::size_t>(begin)]);
            l = begin;
            continue;
        }
        ctx.redo.arena->reset();
        Ctx inner{ctx.redo, ctx.temp, ctx.redo};
        std::vector<Block::Saved> rebuilt(static_cast<std::size_t>(l - begin));
        Tensor x = saved.inputs[static_cast<std::size_t>(begin)];
        for (std::int64_t i = begin; i < l; ++i)
            x = blocks_[static_cast<std::size_t>(i)].forward(inner, in, x,
                                                             rebuilt[static_cast<std::size_t>(i - begin)]);
        for (std::int64_t i = l; i-- > begin;)
            blocks_[static_cast<std::size_t>(i)].backward(inner, in, dx, rebuilt[static_cast<std::size_t>(i - begin)]);
        l = begin;
    }
    embedding_.backward(ctx.temp, in, batch.tokens, dx);
}

Tensor Decoder::run_without_grad(Ctx& ctx, const MicroBatch& batch) const {
    BlockInput in = block_input(ctx, batch, false, batch.S);
    Tensor x = embedding_.forward(ctx.keep, in, batch.tokens);
    Ctx inner{ctx.redo, ctx.temp, ctx.redo};
    for (const Block& block : blocks_) {
        ctx.redo.arena->reset();
        Block::Saved unused;
        Tensor out = block.forward(inner, in, x, unused);
        ops::copy(ctx.temp, x, out);
    }
    Norm::Saved unused;
    return final_norm_.forward(ctx.keep, x, unused);
}

LossSum Decoder::evaluate(Ctx& ctx, const MicroBatch& batch, Tensor* token_loss) const {
    Tensor sums = loss_sums(ctx.keep);
    evaluate(ctx, batch, sums, token_loss);
    return read_loss(ctx.keep, sums);
}

void Decoder::evaluate(Ctx& ctx, const MicroBatch& batch, Tensor sums, Tensor* token_loss) const {
    Tensor normed = run_without_grad(ctx, batch);
    Tensor loss = head_.evaluate(ctx, normed, batch.labels, head_weight());
    if (token_loss) *token_loss = loss;
    ops::add_masked_sum(ctx.temp, sums, loss, batch.loss_mask);
}

Tensor Decoder::logits(Ctx& ctx, const MicroBatch& batch) const {
    return head_.logits(ctx.keep, run_without_grad(ctx, batch), head_weight());
}

KvCache Decoder::make_cache(Arena& arena, std::int64_t B, std::int64_t max_length) const {
    KvCache cache{.B = B, .max_length = max_length, .length = 0, .layers = {}};
    DType dtype = embedding_.word.value.dtype;
    Shape shape{max_length * B, config_.kv_heads * config_.head_dim};
    for (std::int64_t l = 0; l < config_.layers; ++l)
        cache.layers.push_back({arena.tensor(dtype, shape), arena.tensor(dtype, shape)});
    return cache;
}

Tensor Decoder::next_logits(Ctx& ctx, const MicroBatch& batch, KvCache& cache) const {
    TERA_CHECK(batch.B == cache.B && cache.length + batch.S <= cache.max_length, cache.length, "+", batch.S, " of ",
               cache.max_length, " positions");
    BlockInput in = block_input(ctx, batch, false, cache.length + batch.S);
    Tensor x = embedding_.forward(ctx.keep, in, batch.tokens);
    for (std::size_t l = 0; l < blocks_.size(); ++l) {
        ArenaScope scope(*ctx.temp.arena);
        Tensor out = blocks_[l].infer(ctx, in, x, cache.layers[l], cache.length);
        ops::copy(ctx.temp, x, out);
    }
    cache.length += batch.S;
    Norm::Saved unused;
    Tensor last = final_norm_.forward(ctx.keep, x.slice((batch.S - 1) * batch.B, batch.B), unused);
    return head_.logits(ctx.keep, last, head_weight());
}

}  // namespace tera
