#include "parallel/grad_sync.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "ops/convert.h"

namespace tera {
namespace {

/// The elements of a rank's piece that it alone of the tp ranks and stages counts.
std::vector<ParamSlice> counted_once(Param& p) {
    if (p.tie == Param::Tie::copy) return {};
    if (p.shard.dim < 0) {
        if (p.tp.rank != 0) return {};
        return {{&p, 0, p.value.numel()}};
    }
    if (p.shard.dim > 0) return {{&p, 0, p.value.numel()}};
    std::vector<ParamSlice> slices;
    const std::int64_t cols = p.value.numel() / p.value.shape[0];
    for (const ShardPiece& piece : p.pieces()) {
        if (piece.copy != 0) continue;
        const std::int64_t begin = piece.local_begin * cols, count = piece.count * cols;
        if (!slices.empty() && slices.back().begin + slices.back().count == begin)
            slices.back().count += count;
        else
            slices.push_back({&p, begin, count});
    }
    return slices;
}

/// The part of `slice` within [begin, end) of the parameter's elements.
std::vector<ParamSlice> within(const std::vector<ParamSlice>& slices, std::int64_t begin, std::int64_t end) {
    std::vector<ParamSlice> parts;
    for (const ParamSlice& s : slices) {
        const std::int64_t from = std::max(s.begin, begin), to = std::min(s.begin + s.count, end);
        if (from < to) parts.push_back({s.param, from, to - from});
    }
    return parts;
}

}  // namespace

ParamBuffers GradSync::cut(const MeshShape& shape, const Settings& settings) {
    const int ranks = shape.dp * shape.cp;
    ParamBuffers cut;
    if (settings.distributed_optimizer) cut.pieces = ranks;
    if (!settings.overlap_reduce) return cut;
    cut.bucket = settings.bucket > 0 ? settings.bucket : std::max<std::int64_t>(40'000'000, 1'000'000LL * ranks);
    cut.tied_apart = true;
    return cut;
}

GradSync::GradSync(const Mesh& mesh, const std::vector<Param*>& params, std::vector<ParamBuffer> buffers,
                   const Settings& settings, const Engine& engine, const Exec& exec)
    : mesh_(mesh), buffers_(std::move(buffers)), settings_(settings), exec_(exec), lane_(engine), reduced_(lane_) {
    const Comm& ranks = group();
    std::map<const Param*, std::pair<std::int64_t, std::int64_t>> pieces;  // this rank's, in the parameter's elements
    for (const ParamBuffer& b : buffers_) {
        const std::int64_t n = b.grads.numel(), piece = distributed() ? n / ranks.size() : n;
        TERA_CHECK(!distributed() || piece * ranks.size() == n, b.grads.shape, " over ", ranks.size());
        const std::int64_t first = distributed() ? piece * ranks.rank() : 0;
        progress_.push_back({.to_come = b.params.size(), .gathered = Lane::Mark(lane_)});
        for (std::size_t i = 0; i < b.params.size(); ++i) {
            pieces[b.params[i]] = {first - b.begins[i], first - b.begins[i] + piece};
            buffer_of_[b.params[i]] = progress_.size() - 1;
            if (b.params[i]->tie != Param::Tie::none) progress_.back().deferred = true;
        }
    }
    for (std::size_t i = buffers_.size(); i-- > 0;) {  // the model's first parameters are in the last
        if (gathered_with_.empty() || (settings_.gather_in_update && gathers())) gathered_with_.emplace_back();
        gathered_with_.back().push_back(i);
        progress_[i].group = static_cast<int>(gathered_with_.size()) - 1;
    }
    groups_.count = static_cast<int>(gathered_with_.size());
    for (Param* p : params) {
        TERA_CHECK(p->sum_grad_over.has(Axis::dp) && p->sum_grad_over.has(Axis::cp), p->name);
        const auto [begin, end] = pieces.at(p);
        for (const ParamSlice& s : within({{p, 0, p->value.numel()}}, begin, end)) {
            owned_.push_back(s);
            groups_.of.push_back(progress_[buffer_of_.at(p)].group);
        }
        for (const ParamSlice& s : within(counted_once(*p), begin, end)) counted_.push_back(s);
    }
}

Comm& GradSync::norm_group() const { return distributed() ? mesh_.world() : mesh_.over({Axis::tp, Axis::pp}); }

void GradSync::before_use(const Param& param) {
    Progress& p = progress_[buffer_of_.at(&param)];
    if (!p.gathering) return;
    p.gathered.wait(exec_);
    p.gathering = false;
}

void GradSync::gradient_done(const Param& param) {
    const std::size_t buffer = buffer_of_.at(&param);
    Progress& p = progress_[buffer];
    TERA_CHECK(p.to_come > 0 && !p.reduced, param.name, "'s gradient is done twice");
    if (--p.to_come == 0 && !p.deferred) reduce(exec_, buffer);
}

void GradSync::reduce(const Exec& exec, std::size_t buffer) {
    const ParamBuffer& b = buffers_[buffer];
    progress_[buffer].reduced = true;
    if (mesh_.tp().size() > 1) sum_over_tp(exec, b);
    for (const Param* p : b.params)
        if (p->tie != Param::Tie::none) mesh_.embedding()->all_reduce(exec, p->grad, Reduce::sum);
    if (group().size() == 1) return;
    Exec where = exec;
    if (settings_.overlap_reduce) {
        lane_.follow(exec);
        where = lane_.on(exec);
    }
    if (distributed())
        group().reduce_scatter(where, b.grads, piece_of(b.grads));
    else
        group().all_reduce(where, b.grads, Reduce::sum);
}

void GradSync::finish_gradients(const Exec& exec) {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
        if (!progress_[i].reduced) reduce(exec, i);
    if (!settings_.overlap_reduce) return;
    reduced_.set();
    reduced_.wait(exec);
}

void GradSync::updated(const Exec& exec, int number) {
    const std::vector<std::size_t>& buffers = gathered_with_[static_cast<std::size_t>(number)];
    for (const std::size_t i : buffers) {
        progress_[i].to_come = buffers_[i].params.size();
        progress_[i].reduced = false;
    }
    if (!gathers()) return;
    if (settings_.overlap_gather) lane_.follow(exec);
    const Exec where = settings_.overlap_gather ? lane_.on(exec) : exec;
    for (const std::size_t i : buffers) {
        group().all_gather(where, piece_of(buffers_[i].values), buffers_[i].values);
        ops::fill_zero(exec, buffers_[i].grads);
        if (!settings_.overlap_gather) continue;
        progress_[i].gathered.set();
        progress_[i].gathering = true;
    }
}

void GradSync::settle(const Exec& exec) {
    for (Progress& p : progress_) {
        if (p.gathering) p.gathered.wait(exec);
        p.gathering = false;
    }
}

Tensor GradSync::piece_of(const Tensor& buffer) const {
    const std::int64_t n = buffer.numel() / group().size();
    return buffer.slice(n * group().rank(), n);
}

void GradSync::sum_over_tp(const Exec& exec, const ParamBuffer& b) {
    std::vector<const Param*> partial;
    std::int64_t n = 0;
    for (const Param* p : b.params) {
        if (p->sum_grad_over.has(Axis::tp)) {
            partial.push_back(p);
            n += p->grad.numel();
        } else {
            sum_copies(exec, *p);
        }
    }
    if (n == 0) return;
    ArenaScope scope(*exec.arena);
    Tensor all = exec.tensor(b.grads.dtype, {n});  // they are many and small: one message
    std::int64_t at = 0;
    const auto place = [&](const Param& p) {
        Tensor t = all.slice(at, p.grad.numel());
        at += p.grad.numel();
        return t;
    };
    for (const Param* p : partial) ops::copy(exec, place(*p), p->grad.reshape({p->grad.numel()}));
    mesh_.tp().all_reduce(exec, all, Reduce::sum);
    at = 0;
    for (const Param* p : partial) ops::copy(exec, p->grad.reshape({p->grad.numel()}), place(*p));
}

void GradSync::sum_copies(const Exec& exec, const Param& p) {
    if (p.shard.dim != 0) return;
    const std::int64_t cols = p.grad.numel() / p.grad.shape[0];
    const std::vector<ShardPiece> pieces = p.pieces();
    std::int64_t segment_begin = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const std::int64_t size = p.shard.segments.empty() ? p.full_shape[0] : p.shard.segments[i].size;
        if (pieces[i].copies > 1) {  // every rank puts its part in its place in the whole segment
            ArenaScope scope(*exec.arena);
            Tensor whole = exec.tensor(p.grad.dtype, {size, cols});
            ops::fill_zero(exec, whole);
            Tensor mine = whole.slice(pieces[i].full_begin - segment_begin, pieces[i].count);
            const Tensor local = p.grad.slice(pieces[i].local_begin, pieces[i].count).reshape(mine.shape);
            ops::copy(exec, mine, local);
            mesh_.tp().all_reduce(exec, whole, Reduce::sum);
            ops::copy(exec, local, mine);
        }
        segment_begin += size;
    }
}

}  // namespace tera
