#include "parallel/schedule.h"

#include <algorithm>

#include "core/error.h"

namespace tera {

std::string PipelineStep::text() const {
    return cat(kind == Kind::forward ? "F" : "B", micro_batch, chunk > 0 ? cat(".", chunk) : "");
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

std::int64_t most_in_flight(const std::vector<PipelineStep>& steps) {
    std::int64_t now = 0, most = 0;
    for (const PipelineStep& s : steps) {
        now += s.kind == PipelineStep::Kind::forward ? 1 : -1;
        most = std::max(most, now);
    }
    return most;
}

}  // namespace tera
