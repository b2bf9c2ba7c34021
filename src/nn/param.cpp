#include "nn/param.h"

#include <algorithm>

#include "core/rng.h"
#include "ops/convert.h"
#include "ops/init.h"
#include "ops/linear.h"

namespace tera {

std::vector<ShardPiece> Param::pieces() const {
    if (shard.dim < 0) return {{0, 0, full_shape[0], tp.size, tp.rank}};
    std::vector<ShardSegment> segments = shard.segments;
    if (segments.empty()) segments.emplace_back(full_shape[shard.dim]);
    std::vector<ShardPiece> all;
    std::int64_t begin = 0, local = 0;
    for (const ShardSegment& s : segments) {
        TERA_CHECK(s.size % s.units == 0 && (s.units % tp.size == 0 || tp.size % s.units == 0), name, " ", full_shape,
                   ": ", s.units, " units over ", tp.size, " ranks");
        const std::int64_t unit = s.size / s.units, copies = std::max<std::int64_t>(1, tp.size / s.units);
        const std::int64_t units = std::max<std::int64_t>(1, s.units / tp.size);
        all.push_back({begin + tp.rank * s.units / tp.size * unit, local, units * unit, static_cast<int>(copies),
                       static_cast<int>(tp.rank % copies)});
        begin += s.size;
        local += units * unit;
    }
    TERA_CHECK(begin == full_shape[shard.dim], name, " ", full_shape, ": segments of ", begin);
    return all;
}

Shape Param::local_shape() const {
    Shape local = full_shape;
    if (shard.dim < 0) return local;
    local[shard.dim] = 0;
    for (const ShardPiece& p : pieces()) local[shard.dim] += p.count;
    return local;
}

std::vector<ParamSlice> whole_slices(const std::vector<Param*>& params) {
    std::vector<ParamSlice> all;
    for (Param* p : params) all.push_back({p, 0, p->value.numel()});
    return all;
}

std::vector<ElementRun> runs_of(const ParamSlice& slice) {
    const Param& p = *slice.param;
    std::vector<ElementRun> runs;
    // Elements [local, local + n) of the rank's piece are those from `full` on.
    const auto add = [&](std::int64_t local, std::int64_t full, std::int64_t n) {
        const std::int64_t from = std::max(local, slice.begin), to = std::min(local + n, slice.begin + slice.count);
        if (from < to) runs.push_back({from - slice.begin, full + from - local, to - from});
    };
    const std::int64_t cols = p.full_shape.numel() / p.full_shape[0];
    for (const ShardPiece& piece : p.pieces()) {
        if (p.shard.dim <= 0) {
            add(piece.local_begin * cols, piece.full_begin * cols, piece.count * cols);
            continue;
        }
        TERA_CHECK(p.shard.dim == 1 && p.full_shape.ndim == 2 && p.pieces().size() == 1, p.name, " is cut otherwise");
        for (std::int64_t row = 0; row < p.full_shape[0]; ++row)
            add(row * piece.count, row * cols + piece.full_begin, piece.count);
    }
    return runs;
}

std::vector<ParamBuffer> allocate_params(const std::vector<Param*>& params, Arena& arena, DType value_dtype,
                                         GradDTypes grad_dtypes, const ParamBuffers& cut) {
    constexpr std::int64_t alignment = 64;  // elements: at least as many bytes as an arena aligns to
    const auto rounded = [](std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; };
    std::vector<ParamBuffer> buffers;
    std::vector<std::int64_t> sizes;
    std::vector<DType> dtypes;
    std::vector<bool> tied;
    for (std::size_t i = params.size(); i-- > 0;) {
        const DType dtype = params[i]->grad_by_product ? grad_dtypes.products : grad_dtypes.others;
        const bool apart = cut.tied_apart && params[i]->tie != Param::Tie::none;
        std::size_t at = 0;
        while (at < dtypes.size() &&
               (dtypes[at] != dtype || tied[at] != apart || (cut.bucket > 0 && sizes[at] >= cut.bucket)))
            ++at;
        if (at == dtypes.size()) {
            dtypes.push_back(dtype);
            tied.push_back(apart);
            sizes.push_back(0);
            buffers.emplace_back();
        }
        buffers[at].params.push_back(params[i]);
        buffers[at].begins.push_back(sizes[at]);
        sizes[at] += rounded(params[i]->local_shape().numel(), alignment);
    }
    for (std::size_t at = 0; at < buffers.size(); ++at) {
        ParamBuffer& b = buffers[at];
        const std::int64_t n = rounded(sizes[at], alignment * cut.pieces);
        b.values = arena.tensor(value_dtype, {n});
        b.grads = arena.zeros(dtypes[at], {n});
        for (std::size_t i = 0; i < b.params.size(); ++i) {
            const Shape shape = b.params[i]->local_shape();
            b.params[i]->value = b.values.slice(b.begins[i], shape.numel()).reshape(shape);
            b.params[i]->grad = b.grads.slice(b.begins[i], shape.numel()).reshape(shape);
            // The first step runs the same products as all others.
            b.params[i]->grad_is_old = b.params[i]->grad_by_product;
        }
    }
    return buffers;
}

namespace {

/// The slice's elements have the values that the full tensor has there.
void draw(const ParamSlice& s, Tensor to, const Exec& exec, std::uint64_t seed) {
    const Param& p = *s.param;
    ops::RandomFill fill{p.init.kind == Init::Kind::normal, p.init.value, seed, hash_name(p.name)};
    const std::int64_t cols = p.full_shape.numel() / p.full_shape[0];
    to = to.reshape({to.numel()});
    if (p.shard.dim > 0) {
        const std::vector<ShardPiece> pieces = p.pieces();
        TERA_CHECK(p.shard.dim == 1 && p.full_shape.ndim == 2 && pieces.size() == 1, p.name, " is cut otherwise");
        fill.first = pieces[0].full_begin;
        fill.run = pieces[0].count;
        fill.stride = cols;
        fill.skip = s.begin;
        return ops::fill_random(exec, to, fill);
    }
    for (const ShardPiece& piece : p.pieces()) {
        const std::int64_t begin = std::max(s.begin, piece.local_begin * cols);
        const std::int64_t end = std::min(s.begin + s.count, (piece.local_begin + piece.count) * cols);
        if (begin >= end) continue;
        fill.first = begin + (piece.full_begin - piece.local_begin) * cols;
        ops::fill_random(exec, to.slice(begin - s.begin, end - begin), fill);
    }
}

}  // namespace

void init_slice(const ParamSlice& slice, Tensor to, const Exec& exec, std::uint64_t seed) {
    const Init& init = slice.param->init;
    if (init.kind == Init::Kind::constant)
        ops::fill_constant(exec, to, init.value);
    else
        draw(slice, to, exec, seed);
}

void init_params(const std::vector<Param*>& params, const Exec& exec, std::uint64_t seed) {
    for (const ParamSlice& s : whole_slices(params)) init_slice(s, s.value(), exec, seed);
}

void zero_grads(const std::vector<Param*>& params, const Exec& exec) {
    for (Param* p : params) {
        ops::fill_zero(exec, p->grad);
        p->grad_is_old = false;
    }
}

void add_product_grad(const Exec& exec, Param& weight, ConstTensor dy, ConstTensor x, Tensor db) {
    ops::linear_wgrad(exec, weight.grad, dy, x, db, weight.grad_is_old ? ops::Before::nothing : ops::Before::sum);
    if (!exec.counts()) weight.grad_is_old = false;
}

}  // namespace tera
