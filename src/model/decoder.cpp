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
    : Decoder(config, recompute, seed, {0, config.layers}, {}) {}

Decoder::Decoder(const ModelConfig& config, const RecomputeConfig& recompute, std::uint64_t seed,
                 const ModelSlice& slice, const Regions& ranks)
    : config_(config),
      slice_(slice),
      tp_(ranks.tp),
      recompute_(recompute),
      seed_(seed),
      rope_(config.rope, config.head_dim) {
    TERA_CHECK(config.layers > 0 && config.hidden > 0 && config.heads > 0 && config.kv_heads > 0 && config.vocab > 0 &&
                   config.heads % config.kv_heads == 0 && recompute.layers > 0,
               "model sizes");
    TERA_CHECK(slice.first >= 0 && slice.count >= 0 && slice.first + slice.count <= config.layers, "layers from ",
               slice.first, ", ", slice.count, " of ", config.layers);
    TERA_CHECK(slice.count > 0 || slice.embedding || slice.head, "a slice with nothing");
    TERA_CHECK(!recompute.shared || !tp_.sequence_parallel(), "the stream is shared out already");
    const LayerRecompute of_layer{recompute.kind == RecomputeConfig::Kind::selective, !recompute.keep_mlp};
    if (slice.embedding) embedding_.emplace(config, tp_);
    for (std::int64_t l = 0; l < slice.count; ++l) blocks_.emplace_back(config, slice.first + l, of_layer, ranks);
    if (slice.head) {
        final_norm_.emplace(config, "final_norm", tp_.stream_axes());
        head_.emplace(config, tp_, slice.embedding);
    }
    if (embedding_ && config.tied && !slice.head) embedding_->word.tie = Param::Tie::owner;
    visit([&](Param& p) { p.tp = tp_.place(); });
}

void Decoder::check_whole() const {
    TERA_CHECK(tp_.size() == 1 && slice_.count == config_.layers,
               "a slice of a model is asked for what only a whole "
               "one on one rank can do");
}

DType Decoder::dtype() const {
    if (embedding_) return embedding_->word.value.dtype;
    return blocks_.empty() ? final_norm_->dtype() : blocks_[0].dtype();
}

Shape Decoder::stream_shape(const MicroBatch& batch) const { return {tp_.rows(batch.S * batch.B), config_.hidden}; }

BlockInput Decoder::block_input(const Ctx& ctx, const MicroBatch& batch, bool dropout, std::int64_t before) const {
    const std::int64_t length = batch.length ? batch.length : batch.S, positions = before + length;
    TERA_CHECK(positions <= config_.max_positions, "sequence of ", positions, ", model has ", config_.max_positions);
    BlockInput in{.S = batch.S,
                  .B = batch.B,
                  .positions = batch.positions,
                  .doc_start = batch.doc_start,
                  .documents = batch.documents,
                  .sample = batch.sample,
                  .seed = seed_,
                  .dropout = dropout};
    TERA_CHECK(!tp_.sequence_parallel() || batch.S % tp_.size() == 0, "sequence of ", batch.S, " over ", tp_.size(),
               " ranks");
    in.stream = batch.place;
    in.stream.offset = tp_.first_row(batch.S);
    in.length = length;
    if (config_.position == PositionKind::rope && !blocks_.empty())
        in.rope = &rope_.table(ctx.temp, acc_dtype(dtype()), positions);
    return in;
}

std::int64_t Decoder::chunk_end(std::int64_t layer) const {
    switch (recompute_.kind) {
        case RecomputeConfig::Kind::uniform:
            return std::min(slice_.count, layer + recompute_.layers);
        case RecomputeConfig::Kind::block:
            return layer < recompute_.layers ? layer + 1 : layer;
        default:
            return layer;
    }
}

bool Decoder::shares_input(std::int64_t layer) const {
    return recompute_.shared && tp_.size() > 1 && layer < slice_.count && chunk_end(layer) != layer;
}

Exec Decoder::input_memory(const Ctx& ctx) const {
    if (!shares_input(0)) return ctx.keep;
    ctx.redo.arena->reset();
    return ctx.redo;
}

LossSum Decoder::forward(Ctx& ctx, const MicroBatch& batch, double grad_scale, Saved& saved) {
    check_whole();
    Tensor sums = loss_sums(ctx.keep);
    forward(ctx, batch, {.grad_scale = grad_scale, .sums = sums}, saved);
    return read_loss(ctx.keep, sums);
}

namespace {

template <class Part>
void tell_of_use(ParamObserver* observer, Part& part) {
    if (observer != nullptr) part.visit([&](Param& p) { observer->before_use(p); });
}
template <class Part>
void tell_of_gradients(ParamObserver* observer, Part& part) {
    if (observer != nullptr) part.visit([&](Param& p) { observer->gradient_done(p); });
}

}  // namespace

Tensor Decoder::forward(Ctx& ctx, const MicroBatch& batch, const Input& input, Saved& saved, ParamObserver* observer) {
    BlockInput in = block_input(ctx, batch, true);
    saved.blocks.assign(blocks_.size(), {});
    saved.inputs.assign(blocks_.size(), {});
    Tensor x = input.x;
    if (embedding_) {
        tell_of_use(observer, *embedding_);
        Ctx first{input_memory(ctx), ctx.temp, ctx.redo};
        x = embedding_->forward(first, in, batch.tokens);
    }
    for (std::int64_t l = 0; l < slice_.count;) {
        const std::int64_t end = chunk_end(l);
        if (end == l) {
            tell_of_use(observer, blocks_[static_cast<std::size_t>(l)]);
            x = blocks_[static_cast<std::size_t>(l)].forward(ctx, in, x, saved.blocks[static_cast<std::size_t>(l)]);
            ++l;
            continue;
        }
        x = forward_chunk(ctx, in, x, l, saved, observer);
        l = end;
    }
    if (!head_) return x;
    tell_of_use(observer, *final_norm_);
    tell_of_use(observer, *head_);
    Tensor normed = final_norm_->forward(ctx.keep, x, saved.final_norm);
    Tensor loss = head_->forward(ctx, normed, {batch.labels, batch.loss_mask, input.grad_scale}, head_weight(),
                                 saved.head, input.later);
    ops::add_masked_sum(ctx.temp, input.sums, loss, batch.loss_mask);
    return {};
}

Tensor Decoder::forward_chunk(Ctx& ctx, const BlockInput& in, Tensor x, std::int64_t begin, Saved& saved,
                              ParamObserver* observer) {
    ArenaScope scope(*ctx.temp.arena);
    saved.inputs[static_cast<std::size_t>(begin)] = x;
    if (shares_input(begin)) {
        saved.inputs[static_cast<std::size_t>(begin)] = copy_to(ctx.keep, tp_.own_part(x));
        x = copy_to(ctx.temp, x);  // it was in the memory of the chunk before
    }
    ctx.redo.arena->reset();
    Ctx inner{ctx.redo, ctx.temp, ctx.redo};
    Block::Saved unused;
    const std::int64_t end = chunk_end(begin);
    for (std::int64_t l = begin; l < end; ++l) {
        tell_of_use(observer, blocks_[static_cast<std::size_t>(l)]);
        x = blocks_[static_cast<std::size_t>(l)].forward(inner, in, x, unused);
    }
    return shares_input(end) ? x : copy_to(ctx.keep, x);
}

void Decoder::backward(Ctx& ctx, const MicroBatch& batch, const Saved& saved) {
    check_whole();
    ArenaScope scope(*ctx.temp.arena);
    backward(ctx, batch, ctx.temp.like(saved.head.dx), saved);
}

void Decoder::backward(Ctx& ctx, const MicroBatch& batch, Tensor dx, const Saved& saved, ParamObserver* observer) {
    BlockInput in = block_input(ctx, batch, true);
    ArenaScope scope(*ctx.temp.arena);
    if (head_) {
        ops::fill_zero(ctx.temp, dx);
        final_norm_->backward(ctx.temp, dx, saved.head.dx, saved.final_norm);
        if (!saved.head.grad_is_due) tell_of_gradients(observer, *head_);  // its own were done by the forward pass
        tell_of_gradients(observer, *final_norm_);
    }
    for (std::int64_t l = slice_.count; l > 0;) {
        std::int64_t begin = l - 1;
        while (begin > 0 && !saved.inputs[static_cast<std::size_t>(begin)] && chunk_end(begin) != begin) --begin;
        if (!saved.inputs[static_cast<std::size_t>(begin)]) {
            blocks_[static_cast<std::size_t>(begin)].backward(ctx, in, dx,
                                                              saved.blocks[static_cast<std::size_t>(begin)]);
            tell_of_gradients(observer, blocks_[static_cast<std::size_t>(begin)]);
            l = begin;
            continue;
        }
        ctx.redo.arena->reset();
        Ctx inner{ctx.redo, ctx.temp, ctx.redo};
        std::vector<Block::Saved> rebuilt(static_cast<std::size_t>(l - begin));
        Tensor x = saved.inputs[static_cast<std::size_t>(begin)];
        if (shares_input(begin)) x = tp_.from_parts(ctx.redo, x, stream_shape(batch));
        for (std::int64_t i = begin; i < l; ++i)
            x = blocks_[static_cast<std::size_t>(i)].forward(inner, in, x,
                                                             rebuilt[static_cast<std::size_t>(i - begin)]);
        for (std::int64_t i = l; i-- > begin;) {
            blocks_[static_cast<std::size_t>(i)].backward(inner, in, dx, rebuilt[static_cast<std::size_t>(i - begin)]);
            tell_of_gradients(observer, blocks_[static_cast<std::size_t>(i)]);
        }
        l = begin;
    }
    if (!embedding_) return;
    embedding_->backward(ctx.temp, in, batch.tokens, dx);
    tell_of_gradients(observer, *embedding_);
}

void Decoder::finish_head(const Exec& exec, DeferredGrad& grad, ParamObserver* observer) {
    TERA_CHECK(head_, "no output matrix here");
    grad.finish(exec, head_weight());
    tell_of_gradients(observer, *head_);
}

Tensor Decoder::run_without_grad(Ctx& ctx, const MicroBatch& batch, Tensor x) const {
    BlockInput in = block_input(ctx, batch, false);
    if (embedding_) x = embedding_->forward(ctx, in, batch.tokens);
    // One layer at a time, where training has more: the kept ones', or with layers rebuilt the one that is.
    const Exec& layer = chunk_end(0) > 0 ? ctx.redo : ctx.keep;
    Ctx inner{layer, ctx.temp, layer};
    for (const Block& block : blocks_) {
        ArenaScope scope(*layer.arena);
        Block::Saved unused;
        Tensor out = block.forward(inner, in, x, unused);
        ops::copy(ctx.temp, x, out);
    }
    if (!final_norm_) return x;
    Norm::Saved unused;
    return final_norm_->forward(ctx.keep, x, unused);
}

Tensor Decoder::evaluate(Ctx& ctx, const MicroBatch& batch, const Input& input) const {
    Tensor x = run_without_grad(ctx, batch, input.x);
    if (!head_) return x;
    ops::add_masked_sum(ctx.temp, input.sums, head_->evaluate(ctx, x, batch.labels, head_weight()), batch.loss_mask);
    return {};
}

LossSum Decoder::evaluate(Ctx& ctx, const MicroBatch& batch, Tensor* token_loss) const {
    Tensor sums = loss_sums(ctx.keep);
    evaluate(ctx, batch, sums, token_loss);
    return read_loss(ctx.keep, sums);
}

void Decoder::evaluate(Ctx& ctx, const MicroBatch& batch, Tensor sums, Tensor* token_loss) const {
    check_whole();
    Tensor loss = head_->evaluate(ctx, run_without_grad(ctx, batch, {}), batch.labels, head_weight());
    if (token_loss) *token_loss = loss;
    ops::add_masked_sum(ctx.temp, sums, loss, batch.loss_mask);
}

Tensor Decoder::logits(Ctx& ctx, const MicroBatch& batch) const {
    check_whole();
    return head_->logits(ctx.keep, run_without_grad(ctx, batch, {}), head_weight());
}

KvCache Decoder::make_cache(Arena& arena, std::int64_t B, std::int64_t max_length) const {
    check_whole();
    KvCache cache{.B = B, .max_length = max_length, .length = 0, .layers = {}};
    DType dtype = embedding_->word.value.dtype;
    Shape shape{max_length * B, config_.kv_heads * config_.head_dim};
    for (std::int64_t l = 0; l < config_.layers; ++l)
        cache.layers.push_back({arena.tensor(dtype, shape), arena.tensor(dtype, shape)});
    return cache;
}

Tensor Decoder::next_logits(Ctx& ctx, const MicroBatch& batch, KvCache& cache) const {
    TERA_CHECK(batch.B == cache.B && cache.length + batch.S <= cache.max_length, cache.length, "+", batch.S, " of ",
               cache.max_length, " positions");
    BlockInput in = block_input(ctx, batch, false, cache.length);
    Tensor x = embedding_->forward(ctx, in, batch.tokens);
    for (std::size_t l = 0; l < blocks_.size(); ++l) {
        ArenaScope scope(*ctx.temp.arena);
        Tensor out = blocks_[l].infer(ctx, in, x, cache.layers[l], cache.length);
        ops::copy(ctx.temp, x, out);
    }
    cache.length += batch.S;
    Norm::Saved unused;
    Tensor last = final_norm_->forward(ctx.keep, x.slice((batch.S - 1) * batch.B, batch.B), unused);
    return head_->logits(ctx.keep, last, head_weight());
}

}  // namespace tera
