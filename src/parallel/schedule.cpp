#include "parallel/schedule.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>

#include "core/error.h"

namespace tera {

std::string PipelineStep::text() const {
    return cat(kind == Kind::forward ? "F" : "B", micro_batch, chunk > 0 ? cat(".", chunk) : "");
}

Turns turns_of(const std::vector<PipelineStep>& steps) {
    Turns turns{steps.size(), steps.size()};
    for (std::size_t i = 1; i < steps.size(); ++i) {
        if (steps[i].kind != PipelineStep::Kind::backward || steps[i - 1].kind != PipelineStep::Kind::forward) continue;
        turns.begin = std::min(turns.begin, i - 1);
        turns.end = i + 1;
    }
    return turns;
}

std::vector<PipelineStep> forward_schedule(const PipelineShape& s) {
    const std::int64_t group = s.group > 0 ? s.group : s.stages;
    std::vector<PipelineStep> order;
    for (std::int64_t begin = 0; begin < s.micro_batches; begin += group)
        for (int c = 0; c < s.chunks; ++c)
            for (std::int64_t m = begin; m < std::min(s.micro_batches, begin + group); ++m)
                order.push_back({PipelineStep::Kind::forward, m, c});
    return order;
}

std::vector<PipelineStep> schedule_1f1b(const PipelineShape& s, int stage) {
    TERA_CHECK(stage >= 0 && stage < s.stages && s.chunks > 0 && s.micro_batches > 0, "stage ", stage, " of ", s.stages,
               ", ", s.chunks, " chunks, ", s.micro_batches, " micro-batches");
    const std::int64_t group = s.group > 0 ? s.group : s.stages, rest = s.micro_batches % group;
    if (s.chunks > 1 && rest != 0 && rest < s.stages) {
        usage_error(s.micro_batches, " micro-batches in groups of ", group, " leave ", rest, " for ", s.stages,
                    " pipeline stages; with interleaved stages give a --global-batch-size that leaves none, or at "
                    "least one for each stage");
    }
    TERA_CHECK(s.chunks == 1 || group >= s.stages, "groups of ", group, " for ", s.stages, " stages");
    const std::vector<PipelineStep> forwards = forward_schedule(s);
    const auto total = static_cast<std::int64_t>(forwards.size());
    const std::int64_t behind = s.stages - 1 - stage;
    const std::int64_t warm_up = std::min(s.chunks == 1 ? behind : 2 * behind + (s.chunks - 1) * group, total);
    std::vector<PipelineStep> steps;
    for (std::int64_t i = 0; i < total + warm_up; ++i) {
        if (i < total) steps.push_back(forwards[static_cast<std::size_t>(i)]);
        if (i < warm_up) continue;
        const PipelineStep& f = forwards[static_cast<std::size_t>(i - warm_up)];
        steps.push_back({PipelineStep::Kind::backward, f.micro_batch, s.chunks - 1 - f.chunk});
    }
    return steps;
}

std::int64_t most_micro_batches(const std::vector<PipelineStep>& steps) {
    std::set<std::int64_t> open;
    std::size_t most = 0;
    for (const PipelineStep& s : steps) {
        open.insert(s.micro_batch);
        most = std::max(most, open.size());
        if (s.kind == PipelineStep::Kind::backward && s.chunk == 0) open.erase(s.micro_batch);
    }
    return static_cast<std::int64_t>(most);
}

namespace {

/// All stages at once, step by step.
class Rehearsal {
  public:
    explicit Rehearsal(const PipelineShape& shape) : shape_(shape) {
        for (int p = 0; p < shape.stages; ++p) steps_.push_back(schedule_1f1b(shape, p));
        at_.resize(steps_.size());
    }
    std::int64_t run() {
        for (bool moved = true; moved;) {
            moved = false;
            std::vector<std::vector<Key>> sent(steps_.size());
            for (std::size_t p = 0; p < steps_.size(); ++p) moved = advance(static_cast<int>(p), sent[p]) || moved;
            for (const auto& messages : sent)
                for (const Key& message : messages) deliver(message);
        }
        for (std::size_t p = 0; p < steps_.size(); ++p)
            TERA_CHECK(at_[p] == steps_[p].size(), "stage ", p, " waits for ever at ", steps_[p][at_[p]].text());
        return most_;
    }

  private:
    /// A step that waits for a message: what, of which micro-batch, at which place of the whole pipeline.
    struct Key {
        PipelineStep::Kind kind;
        std::int64_t micro_batch;
        int place;
        auto operator<=>(const Key&) const = default;
    };
    int places() const { return shape_.stages * shape_.chunks; }
    /// Messages between two stages in one direction share a channel.
    int channel(const Key& to) const {
        return 2 * (to.place % shape_.stages) + static_cast<int>(to.kind == PipelineStep::Kind::backward);
    }
    void deliver(const Key& message) {
        arrived_.insert(message);
        most_ = std::max(most_, ++waiting_[channel(message)]);
    }
    bool advance(int stage, std::vector<Key>& sent) {
        const auto p = static_cast<std::size_t>(stage);
        if (at_[p] == steps_[p].size()) return false;
        const PipelineStep& s = steps_[p][at_[p]];
        const bool forward = s.kind == PipelineStep::Kind::forward;
        const Key mine{s.kind, s.micro_batch, s.chunk * shape_.stages + stage};
        const bool needs = forward ? mine.place > 0 : mine.place < places() - 1;
        if (needs && arrived_.count(mine) == 0) return false;
        if (needs) --waiting_[channel(mine)];
        const int next = mine.place + (forward ? 1 : -1);
        if (next >= 0 && next < places()) sent.push_back({s.kind, s.micro_batch, next});
        ++at_[p];
        return true;
    }

    PipelineShape shape_;
    std::vector<std::vector<PipelineStep>> steps_;
    std::vector<std::size_t> at_;
    std::set<Key> arrived_;
    std::map<int, std::int64_t> waiting_;
    std::int64_t most_ = 0;
};

}  // namespace

std::int64_t most_on_their_way(const PipelineShape& shape) { return Rehearsal(shape).run(); }

std::int64_t most_in_flight(const std::vector<PipelineStep>& steps) {
    std::int64_t now = 0, most = 0;
    for (const PipelineStep& s : steps) {
        now += s.kind == PipelineStep::Kind::forward ? 1 : -1;
        most = std::max(most, now);
    }
    return most;
}

}  // namespace tera
