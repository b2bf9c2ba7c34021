#include "train/pipeline.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "core/profile.h"

namespace tera {

PipelineShape Pipeline::shape(std::int64_t micro_batches) const {
    return {parts_.mesh.shape().pp, static_cast<int>(parts_.chunks.size()), micro_batches, parts_.group};
}

int Pipeline::neighbour(int distance) const {
    const int stages = parts_.mesh.shape().pp;
    return (parts_.mesh.place().pp + distance + stages) % stages;
}

std::size_t Pipeline::Messages::total() const {
    return static_cast<std::size_t>(neighbours * (on_their_way + (ahead ? 1 : 0))) * bytes;
}

Pipeline::Messages Pipeline::messages(const MicroBatch& batch, std::int64_t micro_batches) const {
    const MeshShape& mesh = parts_.mesh.shape();
    if (mesh.pp == 1) return {};
    MicroBatch part = batch;
    part.S /= mesh.cp;
    const Decoder& model = *parts_.chunks.front();
    const int stage = parts_.mesh.place().pp;
    const bool ring = parts_.chunks.size() > 1;
    Messages messages;
    messages.on_their_way = static_cast<int>(most_on_their_way(shape(micro_batches)));
    messages.bytes = static_cast<std::size_t>(model.stream_shape(part).numel()) * size_of(model.dtype());
    messages.neighbours = (ring || stage + 1 < mesh.pp ? 1 : 0) + (ring || stage > 0 ? 1 : 0);
    messages.ahead = parts_.ahead.any();
    return messages;
}

void Pipeline::connect(const Messages& messages) const {
    const int stages = parts_.mesh.shape().pp, stage = parts_.mesh.place().pp;
    if (stages == 1) return;
    const bool ring = parts_.chunks.size() > 1;
    const int next = ring || stage + 1 < stages ? neighbour(1) : -1, previous = ring || stage > 0 ? neighbour(-1) : -1;
    parts_.mesh.pp().connect_mail({next, previous, messages.on_their_way, messages.bytes, messages.ahead});
    parts_.mesh.pp_back().connect_mail({previous, next, messages.on_their_way, messages.bytes, messages.ahead});
}

void Pipeline::take_part(Drawn& d) const {
    MicroBatch& b = d.batch;
    const int ranks = parts_.mesh.shape().cp;
    TERA_CHECK(b.S % (ranks > 1 ? 2 * ranks : 1) == 0, "sequence of ", b.S, " over ", ranks, " context ranks");
    b.length = b.S;
    b.S /= ranks;
    b.place = zigzag_piece(b.S, parts_.mesh.place().cp, ranks);
    if (parts_.workspace.kind() == Arena::Kind::counting) return;
    const auto copy = [&](const auto*& from, auto* to) {
        if (from == nullptr) return;
        for (std::int64_t s = 0; s < b.S; ++s) std::copy_n(from + b.place.at(s) * b.B, b.B, to + s * b.B);
        from = to;
    };
    const std::int64_t n = b.S * b.B;
    d.ints.resize(static_cast<std::size_t>(4 * n));
    d.mask.resize(static_cast<std::size_t>(n));
    copy(b.tokens, d.ints.data());
    copy(b.labels, d.ints.data() + n);
    copy(b.positions, d.ints.data() + 2 * n);
    copy(b.doc_start, d.ints.data() + 3 * n);
    copy(b.loss_mask, d.mask.data());
    if (b.sample != nullptr) {
        d.sample.assign(b.sample, b.sample + b.B);
        b.sample = d.sample.data();
    }
}

Pipeline::Drawn& Pipeline::drawn(const Work& work, std::int64_t micro_batch) {
    for (Drawn& d : drawn_)
        if (d.number == micro_batch) return d;
    TERA_CHECK(micro_batch == next_, "micro-batch ", micro_batch, " after ", next_);
    ++next_;
    parts_.timers.start("batch-generator", 2);
    const MicroBatch& host = work.next();
    parts_.timers.stop("batch-generator");
    Drawn& d = drawn_.emplace_back();
    d.number = micro_batch;
    d.grad_scale = work.grad_scale ? work.grad_scale(host) : 0;
    d.batch = host;
    if (copies_batches()) take_part(d);
    d.batch = parts_.upload.put(d.batch);
    return d;
}

void Pipeline::release(std::int64_t micro_batch) {
    drawn_.remove_if([&](const Drawn& d) { return d.number == micro_batch; });
}

void Pipeline::expect(const Exec& exec, const MicroBatch& batch, const PipelineStep* next) const {
    if (next == nullptr) return;
    const Decoder& model = chunk(*next);
    const Mesh& mesh = parts_.mesh;
    if (next->kind == PipelineStep::Kind::forward) {
        if (!model.slice().embedding) mesh.pp().expect(exec, model.dtype(), model.stream_shape(batch), neighbour(-1));
    } else if (!model.slice().head) {
        mesh.pp_back().expect(exec, model.dtype(), model.stream_shape(batch), neighbour(1));
    }
}

void Pipeline::forward(const Work& work, const PipelineStep& step, const PipelineStep* next) {
    const ProfileRange range("micro-batch", step.micro_batch), phase("forward");
    const auto free = std::find_if(flights_.begin(), flights_.end(), [](const Flight& f) { return !f.used; });
    const auto slot = static_cast<std::size_t>(free - flights_.begin());
    if (free == flights_.end()) flights_.emplace_back();
    Flight& flight = flights_[slot];
    flight.used = true;
    flight.micro_batch = step.micro_batch;
    flight.chunk = step.chunk;
    const Drawn& d = drawn(work, step.micro_batch);
    Decoder& model = chunk(step);
    Ctx ctx = parts_.workspace.ctx(slot);
    Decoder::Input input{.grad_scale = d.grad_scale, .sums = work.sums};
    std::optional<LmHead::Later> later;
    if (deferred_ && model.slice().head) input.later = &later.emplace(*deferred_, parts_.workspace.later());
    if (!model.slice().embedding) {
        const Exec memory = model.input_memory(ctx);
        input.x = memory.tensor(model.dtype(), model.stream_shape(d.batch));
        parts_.mesh.pp().recv(memory, input.x, neighbour(-1));
    }
    expect(ctx.temp, d.batch, next);
    Tensor out;
    {
        Timers::Scope timer(parts_.timers, "forward-compute", 2);
        out = model.forward(ctx, d.batch, input, flight.saved, parts_.observer);
    }
    if (!model.slice().head)
        parts_.mesh.pp().send(ctx.keep, out, neighbour(1));
    else if (work.loss_known)
        work.loss_known(step.micro_batch, d.batch);
}

void Pipeline::backward(const Work& work, const PipelineStep& step, const PipelineStep* next) {
    const ProfileRange range("micro-batch", step.micro_batch), phase("backward");
    const auto found = std::find_if(flights_.begin(), flights_.end(), [&](const Flight& f) {
        return f.used && f.micro_batch == step.micro_batch && f.chunk == step.chunk;
    });
    TERA_CHECK(found != flights_.end(), "backward of ", step.text(), " without forward");
    const auto slot = static_cast<std::size_t>(found - flights_.begin());
    const Drawn& d = drawn(work, step.micro_batch);
    Decoder& model = chunk(step);
    Ctx ctx = parts_.workspace.ctx(slot);
    {
        ArenaScope scope(*ctx.temp.arena);
        Tensor dx = ctx.temp.tensor(model.dtype(), model.stream_shape(d.batch));
        if (!model.slice().head) parts_.mesh.pp_back().recv(ctx.temp, dx, neighbour(1));
        expect(ctx.temp, d.batch, next);
        {
            Timers::Scope timer(parts_.timers, "backward-compute", 2);
            const bool last = step.micro_batch == work.micro_batches - 1;
            model.backward(ctx, d.batch, dx, found->saved, last ? parts_.observer : nullptr);
        }
        if (!model.slice().embedding) parts_.mesh.pp_back().send(ctx.temp, dx, neighbour(-1));
    }
    found->used = false;
    parts_.workspace.reset(slot);
    if (step.chunk == 0) release(step.micro_batch);  // the first chunk's backward comes last
}

Pipeline::Pipeline(const Parts& parts) : parts_(parts) {
    if (parts.deferral && parts.chunks.back()->slice().head) deferred_.emplace(*parts.deferral);
    if (!parts.records || parts.mesh.shape().size() > 1 || parts.chunks.size() > 1 || parts.observer || deferred_ ||
        parts.timers.takes(2) || parts.workspace.kind() == Arena::Kind::counting)
        return;
    recorder_.emplace(parts.workspace.engine());
    params_ = params_of(*parts.chunks[0]);
}

void Pipeline::forward_and_backward(const Work& work, const PipelineStep& forward_step,
                                    const PipelineStep& backward_step) {
    const auto give = [&] {
        forward(work, forward_step, nullptr);
        backward(work, backward_step, nullptr);
    };
    const Drawn& d = drawn(work, forward_step.micro_batch);
    // What documents there are is told to kernels one by one.
    if (d.batch.doc_start != nullptr) return give();
    const MicroBatch& b = d.batch;
    const auto number = [](const auto* p) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(p)); };
    Recorder::Key key = {static_cast<std::uint64_t>(b.S),
                         static_cast<std::uint64_t>(b.B),
                         number(b.tokens),
                         number(b.labels),
                         number(b.loss_mask),
                         number(b.positions),
                         number(b.sample),
                         std::bit_cast<std::uint64_t>(d.grad_scale),
                         number(work.sums.data)};
    for (const Param* p : params_) key.push_back(p->grad_is_old);
    // Memory that has grown since is somewhere else.
    const Ctx ctx = parts_.workspace.ctx();
    for (const Exec& memory : {ctx.keep, ctx.temp, ctx.redo}) {
        ArenaScope scope(*memory.arena);
        key.push_back(number(memory.tensor(DType::u8, {1}).data));
    }
    if (recorder_->run(key, give) != Recorder::Outcome::played) return;
    for (Param* p : params_) p->grad_is_old = false;  // as after any backward pass
    if (work.loss_known) work.loss_known(forward_step.micro_batch, b);
    release(forward_step.micro_batch);
}

void Pipeline::train(const Work& work) {
    next_ = 0;
    drawn_.clear();
    for (Flight& f : flights_) f.used = false;
    const std::vector<PipelineStep> steps = schedule_1f1b(shape(work.micro_batches), parts_.mesh.place().pp);
    const Turns turns = turns_of(steps);
    for (std::size_t i = 0; i < steps.size(); ++i) {
        if (recorder_ && trained_) {  // forward and backward take turns
            forward_and_backward(work, steps[i], steps[i + 1]);
            ++i;
            continue;
        }
        const bool ahead = turns.has(i + 1) ? parts_.ahead.turns : parts_.ahead.ends;
        const PipelineStep* const next = trained_ && ahead && i + 1 < steps.size() ? &steps[i + 1] : nullptr;
        if (steps[i].kind == PipelineStep::Kind::forward)
            forward(work, steps[i], next);
        else
            backward(work, steps[i], next);
    }
    trained_ = true;
    if (!deferred_) return;
    parts_.chunks.back()->finish_head(parts_.workspace.ctx().temp, *deferred_, parts_.observer);
    parts_.workspace.reset_later();
}

void Pipeline::evaluate(const Work& work) {
    next_ = 0;
    drawn_.clear();
    const int last = static_cast<int>(parts_.chunks.size()) - 1;
    if (parts_.observer != nullptr) {
        for (Decoder* model : parts_.chunks) model->visit([&](Param& p) { parts_.observer->before_use(p); });
    }
    for (const PipelineStep& step : forward_schedule(shape(work.micro_batches))) {
        const Drawn& d = drawn(work, step.micro_batch);
        const Decoder& model = chunk(step);
        Ctx ctx = parts_.workspace.ctx();
        Decoder::Input input{.sums = work.sums};
        if (!model.slice().embedding) {
            input.x = ctx.keep.tensor(model.dtype(), model.stream_shape(d.batch));
            parts_.mesh.pp().recv(ctx.keep, input.x, neighbour(-1));
        }
        const Tensor out = model.evaluate(ctx, d.batch, input);
        if (!model.slice().head) parts_.mesh.pp().send(ctx.keep, out, neighbour(1));
        parts_.workspace.reset();
        if (step.chunk == last) release(step.micro_batch);
    }
}

void Pipeline::share(const Exec& exec, Tensor sums) const {
    parts_.mesh.over({Axis::dp, Axis::cp}).all_reduce(exec, sums, Reduce::sum);
    parts_.mesh.pp().broadcast(exec, sums, parts_.mesh.shape().pp - 1);
}

}  // namespace tera
